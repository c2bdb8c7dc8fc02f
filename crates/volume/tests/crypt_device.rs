//! A `CryptDevice` is a device like any other, and encrypts.

use block::layer::{Effect, Fault, Rule, Slice, Trace, Trigger};
use block::model::{Discarded, Model};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Completion, Engine, FileDevice, FileOptions,
    Geometry, Meter, Operation, OperationKind, Part, Queue, QueueOptions, RamDevice, Request, Wait,
};
use cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize, Sharing};
use cryptmark_volume::{CryptDevice, Mapping, VolumeError};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: u64 = 1 << 20;

fn key() -> Key {
    Key::from((0..64).collect::<Vec<u8>>())
}

fn mapping(notation: &str, sector: SectorSize, data: ByteRange) -> Mapping {
    Mapping {
        spec: notation.parse().unwrap(),
        key: key(),
        layout: SectorLayout {
            size: sector,
            large_iv: false,
        },
        data,
        first: IvSector::new(0),
        backend: None,
        sharing: None,
        allow_discards: false,
        holes: false,
    }
}

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange { offset, length }
}

#[test]
fn every_cipher_and_sector_size_behaves_as_a_byte_array() {
    for (seed, notation) in CipherSpec::KNOWN.iter().enumerate() {
        let spec: CipherSpec = notation.parse().unwrap();
        for &sector in spec.sector_sizes() {
            let ram = RamDevice::new(SIZE);
            let mut mapping = mapping(notation, sector, range(0, SIZE));
            mapping.key = Key::from(vec![0x5a; spec.default_key_size()]);
            let crypt = CryptDevice::new(&ram, mapping).unwrap();
            Model::new(seed as u64).run(&crypt);
        }
    }
}

#[test]
fn several_cores_write_what_one_writes() {
    let (one, two) = (RamDevice::new(SIZE), RamDevice::new(SIZE));
    let open = |ram, sharing| {
        let mut mapping = mapping("aes-xts-plain64", SectorSize::B4096, range(0, SIZE));
        mapping.sharing = sharing;
        CryptDevice::new(ram, mapping).unwrap()
    };
    let sharing = Sharing {
        cores: 2,
        part: 16 << 10,
    };
    let plain: Vec<u8> = (0..SIZE).map(|i| ((i * i) >> 7) as u8).collect();
    for (ram, sharing) in [(&one, None), (&two, Some(sharing))] {
        let crypt = open(ram, sharing);
        crypt.write_at(4096, &plain[4096..]).unwrap();
        Model::new(11).run(&crypt);
    }
    let mut stored = [vec![0; SIZE as usize], vec![0; SIZE as usize]];
    one.read_at(0, &mut stored[0]).unwrap();
    two.read_at(0, &mut stored[1]).unwrap();
    assert!(stored[0] == stored[1]);
}

#[test]
fn a_data_area_inside_a_device_leaves_the_rest_alone() {
    let ram = RamDevice::new(SIZE);
    ram.write_at(0, &vec![0xA5; SIZE as usize]).unwrap();
    let data = range(64 << 10, SIZE - (128 << 10));
    let crypt =
        CryptDevice::new(&ram, mapping("aes-xts-plain64", SectorSize::B4096, data)).unwrap();
    Model::new(7).run(&crypt);
    let mut outside = vec![0; 64 << 10];
    for offset in [0, SIZE - (64 << 10)] {
        ram.read_at(offset, &mut outside).unwrap();
        assert!(outside.iter().all(|byte| *byte == 0xA5));
    }
}

#[test]
fn what_is_stored_is_what_the_cipher_makes_of_it() {
    // Offset, skip and sector size in the numbering of dm-crypt: IVs count
    // 512-byte units from the start of the data area plus the IV offset.
    let ram = RamDevice::new(SIZE);
    let mut mapping = mapping(
        "serpent-xts-plain64",
        SectorSize::B2048,
        range(8192, SIZE - 8192),
    );
    mapping.first = IvSector::new(40);
    let layout = mapping.layout;
    let crypt = CryptDevice::new(&ram, mapping).unwrap();
    let plain: Vec<u8> = (0..8192_u32).map(|i| (i * 7) as u8).collect();
    crypt.write_at(4096, &plain).unwrap();

    let mut expected = plain;
    let spec: CipherSpec = "serpent-xts-plain64".parse().unwrap();
    spec.cipher(&key(), layout, None)
        .unwrap()
        .encrypt(IvSector::new(40 + 4096 / 512), &mut expected);
    let mut stored = vec![0; 8192];
    ram.read_at(8192 + 4096, &mut stored).unwrap();
    assert_eq!(stored, expected);
}

#[test]
fn impossible_data_areas_are_refused() {
    let ram = RamDevice::new(SIZE);
    let open =
        |data| CryptDevice::new(&ram, mapping("aes-xts-plain64", SectorSize::B4096, data)).err();
    for data in [
        range(0, SIZE + 4096),
        range(SIZE, 4096),
        range(u64::MAX - 4095, 8192),
    ] {
        let error = open(data).unwrap();
        assert!(matches!(error, VolumeError::DataArea { .. }), "{error}");
        assert!(!error.remedy().is_empty());
    }
    for data in [range(512, 4096), range(0, 4096 + 512)] {
        assert!(matches!(
            open(data),
            Some(VolumeError::DataAlignment { unit: 4096, .. })
        ));
    }
    let mut wrong_key = mapping("aes-xts-plain64", SectorSize::B512, range(0, SIZE));
    wrong_key.key = Key::from(vec![0; 40]);
    assert!(matches!(
        CryptDevice::new(&ram, wrong_key),
        Err(VolumeError::Cipher(_))
    ));
}

#[test]
fn discards_stop_here_unless_allowed() {
    let refused = CryptDevice::new(
        RamDevice::new(SIZE),
        mapping("aes-xts-plain64", SectorSize::B512, range(0, SIZE)),
    )
    .unwrap();
    assert_eq!(refused.geometry().discard_granularity, None);
    assert!(matches!(
        refused.discard(range(0, 4096)),
        Err(BlockError::Unsupported { .. })
    ));

    let trace = Trace::new(RamDevice::new(SIZE));
    let mut allowing = mapping("aes-xts-plain64", SectorSize::B512, range(4096, 65536));
    (allowing.allow_discards, allowing.holes) = (true, true);
    let passed = CryptDevice::new(&trace, allowing).unwrap();
    passed.discard(range(512, 1024)).unwrap();
    let entries = trace.take();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].offset, entries[0].length), (4608, 1024));
}

#[test]
fn what_was_discarded_reads_as_zeros() {
    let mut allowing = mapping("aes-xts-plain64", SectorSize::B512, range(4096, 65536));
    (allowing.allow_discards, allowing.holes) = (true, true);
    let crypt = CryptDevice::new(RamDevice::new(SIZE), allowing).unwrap();
    assert!(crypt.geometry().discard_zeroes);
    crypt.write_at(0, &[5; 65536]).unwrap();
    crypt.discard(range(1024, 2048)).unwrap();
    // Zeros that were written are stored; they are not a hole.
    crypt.write_at(8192, &[0; 512]).unwrap();
    let mut stored = [0; 512];
    crypt.device().read_at(4096 + 8192, &mut stored).unwrap();
    assert_ne!(stored, [0; 512]);
    let mut expected = vec![5; 65536];
    expected[1024..3072].fill(0);
    expected[8192..8704].fill(0);
    let mut bytes = vec![1; 65536];
    crypt.read_at(0, &mut bytes).unwrap();
    assert!(bytes == expected);
    Model {
        discarded: Discarded::Zeros,
        ..Model::new(72)
    }
    .run(&crypt);
}

/// A power cut may tear a discard, and a write over discarded data. The disk knows nothing of
/// sectors that are larger than its blocks.
#[test]
fn a_sector_that_was_discarded_in_part_keeps_the_rest() {
    let mut allowing = mapping("aes-xts-plain64", SectorSize::B4096, range(0, 65536));
    (allowing.allow_discards, allowing.holes) = (true, true);
    let crypt = CryptDevice::new(RamDevice::new(SIZE), allowing).unwrap();
    crypt.write_at(0, &[5; 65536]).unwrap();
    crypt.device().discard(range(4096 + 512, 1024)).unwrap();
    let mut expected = vec![5; 65536];
    expected[4096 + 512..][..1024].fill(0);
    let mut bytes = vec![1; 65536];
    crypt.read_at(0, &mut bytes).unwrap();
    assert!(bytes == expected);
}

#[test]
fn a_failed_read_hands_the_buffer_back_undecrypted() {
    let fault = Fault::new(
        RamDevice::new(SIZE),
        [Rule::on(
            OperationKind::Read,
            Trigger::Nth(1),
            Effect::Fail(5),
        )],
    );
    let crypt = CryptDevice::new(
        &fault,
        mapping("aes-xts-plain64", SectorSize::B512, range(0, SIZE)),
    )
    .unwrap();
    let mut queue = crypt.queue(QueueOptions::new(2)).unwrap();
    queue.submit(Request::new(
        Operation::Read,
        4096,
        AlignedBuffer::new(512),
        9,
    ));
    let completion = queue.reap(Wait::Yes).unwrap();
    assert_eq!(completion.result.unwrap_err().errno(), 5);
    assert_eq!(
        (completion.request.tag, completion.request.offset),
        (9, 4096)
    );
    assert_eq!(completion.request.buffer.len(), 512);
    assert!(queue.reap(Wait::Yes).is_none());
}

#[test]
fn requests_that_do_not_fit_come_back_and_reach_nothing() {
    let trace = Trace::new(RamDevice::new(SIZE));
    let slice = Slice::new(&trace, range(0, SIZE)).unwrap();
    let crypt = CryptDevice::new(
        &slice,
        mapping("aes-xts-plain64", SectorSize::B4096, range(0, SIZE)),
    )
    .unwrap();
    let mut queue = crypt.queue(QueueOptions::new(4)).unwrap();
    for (tag, offset, length) in [(1, 512, 4096), (2, 0, 512), (3, SIZE, 4096)] {
        queue.submit(Request::new(
            Operation::Write,
            offset,
            AlignedBuffer::new(length),
            tag,
        ));
    }
    assert_eq!(queue.in_flight(), 3);
    for _ in 0..3 {
        assert!(queue.reap(Wait::Yes).unwrap().result.is_err());
    }
    assert_eq!(queue.in_flight(), 0);
    assert!(trace.take().is_empty());
}

#[test]
fn crypto_time_is_charged_to_the_request_and_to_the_meter() {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    fn clock() -> u64 {
        TICKS.fetch_add(1, Ordering::Relaxed)
    }
    let crypt = CryptDevice::new(
        Arc::new(RamDevice::new(SIZE)),
        mapping("aes-xts-plain64", SectorSize::B512, range(0, SIZE)),
    )
    .unwrap();
    let meter = Rc::new(Meter::new(clock));
    let mut queue = crypt
        .queue(QueueOptions {
            depth: 1,
            meter: Rc::clone(&meter),
        })
        .unwrap();
    for (operation, length) in [
        (Operation::Write, 512),
        (Operation::Read, 512),
        (Operation::Write, SIZE as usize),
        (Operation::Read, SIZE as usize),
    ] {
        let before = meter.spent(Part::Crypto);
        queue.submit(Request::new(operation, 0, AlignedBuffer::new(length), 0));
        let completion = queue.reap(Wait::Yes).unwrap();
        assert!(completion.request.timeline.crypto > 0);
        assert_eq!(
            meter.spent(Part::Crypto) - before,
            completion.request.timeline.crypto
        );
    }
}

#[test]
fn a_large_request_alone_goes_in_parts_and_comes_back_whole() {
    const LARGE: u64 = 64 << 20;
    const REQUEST: u64 = 4 << 20;
    let trace = Trace::new(RamDevice::new(LARGE));
    let data = range(1 << 20, LARGE - (1 << 20));
    let crypt =
        CryptDevice::new(&trace, mapping("aes-xts-plain64", SectorSize::B4096, data)).unwrap();
    let mut queue = crypt.queue(QueueOptions::new(32)).unwrap();
    // Parts below, and bytes of the first of them, with nothing else in flight.
    for (length, parts, first) in [
        (4096, 1, 4096),
        (128 << 10, 1, 128 << 10),
        ((128 << 10) + 4096, 2, 128 << 10),
        (1 << 20, 8, 128 << 10),
        (REQUEST, 8, 512 << 10),
        (REQUEST + 4096, 7, 640 << 10),
    ] {
        let mut buffer = AlignedBuffer::new(length as usize + 4096);
        buffer.set_len(length as usize);
        buffer.fill(length as u8 | 1);
        let address = buffer.as_ptr();
        queue.submit(Request::new(Operation::Write, 8192, buffer, u64::MAX));
        let written = queue.reap(Wait::Yes).unwrap();
        written.result.unwrap();
        let entries = trace.take();
        assert_eq!((entries.len(), entries[0].length), (parts, first));
        assert_eq!(entries[0].offset, (1 << 20) + 8192);
        let whole: u64 = entries.iter().map(|entry| entry.length).sum();
        assert_eq!(whole, length);

        queue.submit(Request::new(
            Operation::Read,
            8192,
            written.request.buffer,
            5,
        ));
        let read = queue.reap(Wait::Yes).unwrap();
        read.result.unwrap();
        assert_eq!((read.request.tag, read.request.offset), (5, 8192));
        let buffer = read.request.buffer;
        assert_eq!((buffer.as_ptr(), buffer.len() as u64), (address, length));
        assert_eq!(buffer.capacity() as u64, length + 4096);
        assert!(buffer.iter().all(|&byte| byte == length as u8 | 1));
        assert_eq!(trace.take().len(), parts);
    }
    // Others in flight keep the device busy.
    let requests = AlignedBuffer::several(10, REQUEST as usize);
    let mut parts = Vec::new();
    for (nth, buffer) in requests.into_iter().enumerate() {
        let offset = nth as u64 * REQUEST;
        queue.submit(Request::new(Operation::Write, offset, buffer, nth as u64));
        parts.push(trace.take().len());
    }
    assert_eq!(parts, [8, 4, 2, 2, 1, 1, 1, 1, 1, 1]);
    assert_eq!(queue.in_flight(), 10);
    for _ in 0..10 {
        queue.reap(Wait::Yes).unwrap().result.unwrap();
    }
    assert!(queue.reap(Wait::Yes).is_none());
}

#[test]
fn large_requests_behave_as_a_byte_array() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(16 << 20).unwrap();
    for engine in [Engine::IoUring, Engine::Threads, Engine::Pread] {
        let options = FileOptions {
            write: true,
            engine: Some(engine),
            ..FileOptions::default()
        };
        let Ok(device) = FileDevice::open(file.path(), &options) else {
            println!("skipped: {engine} is not to be had here");
            continue;
        };
        let data = range(0, 16 << 20);
        let crypt =
            CryptDevice::new(device, mapping("aes-xts-plain64", SectorSize::B512, data)).unwrap();
        Model {
            steps: 200,
            longest: 3 << 20,
            ..Model::new(5)
        }
        .run(&crypt);
    }
}

#[test]
fn what_fails_in_part_fails_and_gives_the_buffer_back() {
    for operation in [OperationKind::Read, OperationKind::Write] {
        let fault = Fault::new(
            RamDevice::new(SIZE),
            [Rule::on(operation, Trigger::Nth(3), Effect::Fail(5))],
        );
        let crypt = CryptDevice::new(
            fault,
            mapping("aes-xts-plain64", SectorSize::B512, range(0, SIZE)),
        )
        .unwrap();
        let mut queue = crypt.queue(QueueOptions::new(1)).unwrap();
        let asked = match operation {
            OperationKind::Read => Operation::Read,
            _ => Operation::Write,
        };
        for (nth, fails) in [true, false].into_iter().enumerate() {
            let buffer = AlignedBuffer::new(SIZE as usize);
            queue.submit(Request::new(asked, 0, buffer, nth as u64));
            let one_more = Request::new(asked, 0, AlignedBuffer::new(512), 9);
            queue.submit(one_more);
            let mut completions =
                [queue.reap(Wait::Yes), queue.reap(Wait::Yes)].map(Option::unwrap);
            completions.sort_by_key(|completion| completion.request.tag);
            let [done, too_many] = completions;
            assert!(matches!(
                too_many.result,
                Err(BlockError::QueueFull { depth: 1 })
            ));
            assert_eq!(done.result.is_err(), fails);
            assert_eq!(done.request.buffer.len() as u64, SIZE);
        }
    }
}

/// Keeps every buffer that it is given, and gives another back.
struct Keeper(RamDevice);

struct KeeperQueue<'a>(Box<dyn Queue + 'a>);

impl BlockDevice for Keeper {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.0.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.0.write_at(offset, data)
    }
    fn flush(&self) -> Result<(), BlockError> {
        self.0.flush()
    }
    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.0.discard(range)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(KeeperQueue(self.0.queue(options)?)))
    }
}

impl Queue for KeeperQueue<'_> {
    fn submit(&mut self, request: Request) {
        self.0.submit(request);
    }
    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        let mut completion = self.0.reap(wait)?;
        let request = &mut completion.request;
        request.buffer = AlignedBuffer::from(&request.buffer[..]);
        Some(completion)
    }
    fn in_flight(&self) -> u32 {
        self.0.in_flight()
    }
}

#[test]
fn a_device_may_give_other_buffers_back() {
    let trace = Trace::new(Keeper(RamDevice::new(16 << 20)));
    let data = range(0, 16 << 20);
    let crypt =
        CryptDevice::new(&trace, mapping("aes-xts-plain64", SectorSize::B512, data)).unwrap();
    Model {
        steps: 100,
        longest: 3 << 20,
        ..Model::new(6)
    }
    .run(&crypt);
    trace.take();
    let mut queue = crypt.queue(QueueOptions::new(1)).unwrap();
    // It is found out once.
    for parts in [8, 1, 1] {
        let mut buffer = AlignedBuffer::new(2 << 20);
        buffer.fill(7);
        queue.submit(Request::new(Operation::Write, 0, buffer, 3));
        let done = queue.reap(Wait::Yes).unwrap();
        done.result.unwrap();
        assert_eq!(done.request.buffer.len(), 2 << 20);
        assert_eq!(trace.take().len(), parts);
        let mut read = vec![0; 2 << 20];
        crypt.read_at(0, &mut read).unwrap();
        assert!(read.iter().all(|&byte| byte == 7));
        trace.take();
    }
}
