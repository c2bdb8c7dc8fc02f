//! Servers that are killed and come back, with all that was not flushed lost.

use super::proxy::Proxy;
use super::{ClientError, Folder, NbdDevice, Running, told, uri};
use crate::Access;
use block::layer::WriteCache;
use block::model::{Discarded, Model};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Operation, Queue,
    QueueOptions, RamDevice, Request, Wait,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 2 << 20;

/// A disk in memory behind a volatile cache, which its server dies with.
struct Volatile {
    cache: WriteCache<Arc<RamDevice>>,
    dead: Arc<AtomicBool>,
}

impl Volatile {
    fn alive(&self) -> Result<(), BlockError> {
        match self.dead.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(BlockError::Injected { errno: 5 }),
        }
    }
}

impl BlockDevice for Volatile {
    fn geometry(&self) -> Geometry {
        self.cache.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.alive()?;
        self.cache.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.alive()?;
        self.cache.write_at(offset, data)
    }
    fn flush(&self) -> Result<(), BlockError> {
        self.alive()?;
        self.cache.flush()
    }
    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.alive()?;
        self.cache.discard(range)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}

/// A server that can be killed, reached by a proxy.
struct Mortal {
    folder: Folder,
    proxy: Proxy,
    disk: Arc<RamDevice>,
    life: Option<(Running, Arc<AtomicBool>)>,
    lives: u64,
}

impl Mortal {
    fn new() -> Self {
        let folder = Folder::new();
        let proxy = Proxy::new(&folder.path("door"), &folder.path("0"));
        let mut mortal = Self {
            folder,
            proxy,
            disk: Arc::new(RamDevice::new(SIZE)),
            life: None,
            lives: 0,
        };
        mortal.begin();
        mortal
    }

    fn begin(&mut self) {
        let socket = self.folder.path(&self.lives.to_string());
        let dead = Arc::new(AtomicBool::new(false));
        let device = Volatile {
            cache: WriteCache::new(Arc::clone(&self.disk)),
            dead: Arc::clone(&dead),
        };
        let running = Running::start(&socket, Arc::new(device), Access::Write);
        self.proxy.mend(&socket);
        self.life = Some((running, dead));
        self.lives += 1;
    }

    /// Kills the server: all that was not flushed is lost.
    fn kill(&mut self) {
        self.proxy.cut();
        if let Some((running, dead)) = self.life.take() {
            dead.store(true, Ordering::SeqCst);
            drop(running);
        }
    }

    fn door(&self) -> PathBuf {
        self.folder.path("door")
    }

    fn client(&self) -> NbdDevice {
        NbdDevice::open(&uri(&self.door())).unwrap()
    }

    /// The data that would remain if the server died now.
    fn durable(&self) -> Vec<u8> {
        let mut bytes = vec![0; SIZE as usize];
        self.disk.read_at(0, &mut bytes).unwrap();
        bytes
    }
}

/// Servers that die in a test.
const KILLS: u64 = 12;

/// Kills servers while `work` is done, once or more often.
fn dying(mortal: &mut Mortal, work: impl Fn(u64) + Sync) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            for round in 0.. {
                work(round);
                if over.load(Ordering::SeqCst) {
                    return round + 1;
                }
            }
            0
        });
        for kill in 0..KILLS {
            std::thread::sleep(Duration::from_millis(15 + kill * 13 % 50));
            assert!(!working.is_finished(), "it has failed");
            mortal.kill();
            std::thread::sleep(Duration::from_millis(kill % 3 * 5));
            mortal.begin();
        }
        over.store(true, Ordering::SeqCst);
        println!("{KILLS} servers, {} rounds", working.join().unwrap());
    });
}

fn model(seed: u64) -> Model {
    Model {
        depth: 16,
        discarded: Discarded::Anything,
        ..Model::new(seed)
    }
}

/// Users of the device do not notice that its server dies and loses data.
#[test]
fn a_device_outlives_servers_that_lose_what_was_not_flushed() {
    for (seed, lines) in [(1, 4), (2, 1)] {
        let mut mortal = Mortal::new();
        let mut client = mortal.client();
        assert_eq!(client.lines.len(), 4);
        client.lines.truncate(lines);
        dying(&mut mortal, |round| model(seed * 10 + round).run(&client));
        let mut seen = vec![0; SIZE as usize];
        client.read_at(0, &mut seen).unwrap();
        client.flush().unwrap();
        mortal.kill();
        assert!(mortal.durable() == seen, "what was flushed is lost");
    }
}

#[test]
fn many_queues_share_connections_that_break() {
    const QUEUES: u64 = 9;
    const BLOCKS: u64 = SIZE / QUEUES / 4096;
    let mut mortal = Mortal::new();
    let client = mortal.client();
    let written = AtomicU64::new(0);
    dying(&mut mortal, |_| {
        std::thread::scope(|scope| {
            for own in 0..QUEUES {
                let (client, written) = (&client, &written);
                scope.spawn(move || {
                    let mut queue = client.queue(QueueOptions::new(8)).unwrap();
                    for generation in 0..6_u64 {
                        for block in 0..BLOCKS {
                            let buffer =
                                AlignedBuffer::from(&[own as u8 ^ generation as u8; 4096][..]);
                            let at = (own * BLOCKS + block) * 4096;
                            queue.submit(Request::new(Operation::Write, at, buffer, block));
                            while queue.in_flight() >= 8 {
                                queue.reap(Wait::Yes).unwrap().result.unwrap();
                                written.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        while let Some(done) = queue.reap(Wait::Yes) {
                            done.result.unwrap();
                        }
                        if generation % 2 == own % 2 {
                            let flush = AlignedBuffer::empty();
                            queue.submit(Request::new(Operation::Flush, 0, flush, 0));
                            queue.reap(Wait::Yes).unwrap().result.unwrap();
                        }
                        let mut bytes = vec![0; (BLOCKS * 4096) as usize];
                        client.read_at(own * BLOCKS * 4096, &mut bytes).unwrap();
                        assert!(
                            bytes
                                .iter()
                                .all(|&byte| byte == own as u8 ^ generation as u8)
                        );
                    }
                });
            }
        });
    });
    client.flush().unwrap();
    mortal.kill();
    let durable = mortal.durable();
    for own in 0..QUEUES {
        let part = &durable[(own * BLOCKS * 4096) as usize..][..(BLOCKS * 4096) as usize];
        assert!(
            part.iter().all(|&byte| byte == own as u8 ^ 5),
            "queue {own}"
        );
    }
    assert!(written.into_inner() > 0);
}

/// More than is kept in memory is written: the server is asked to flush.
#[test]
fn what_is_kept_has_a_bound() {
    let mut mortal = Mortal::new();
    let client = mortal.client();
    let piece = vec![7; 1 << 20];
    for round in 0..(super::super::unflushed::MOST_BYTES >> 20) as u64 + 2 {
        client.write_at(round % 2 * (1 << 20), &piece).unwrap();
    }
    assert!(client.unflushed().iter().count() <= 64);
    assert_eq!(mortal.durable()[..100], [7; 100], "it was told to flush");
    client.write_at(0, &[8; 512]).unwrap();
    mortal.kill();
    assert_eq!(mortal.durable()[..100], [7; 100]);
    mortal.begin();
    let mut bytes = [0; 512];
    client.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [8; 512], "it was written again");
    assert_eq!(mortal.durable()[..100], [7; 100]);
    client.flush().unwrap();
    assert_eq!(mortal.durable()[..100], [8; 100]);
    assert_eq!(client.unflushed().iter().count(), 0);
}

/// A server that is away for longer than the client's patience, and comes back.
#[test]
fn what_has_no_answer_in_time_fails_and_nothing_is_lost() {
    let mut mortal = Mortal::new();
    let client = mortal.client().with_patience(Duration::from_millis(300));
    client.write_at(4096, &[1; 4096]).unwrap();
    mortal.kill();
    let begun = Instant::now();
    for _ in 0..3 {
        let error = client.flush().unwrap_err();
        assert!(matches!(error, BlockError::Io { .. }), "{error:?}");
    }
    let error = client.read_at(0, &mut [0; 512]).unwrap_err();
    assert!(told(&error).contains("NBD server"), "{}", told(&error));
    assert!(begun.elapsed() < Duration::from_secs(20), "it hung");
    mortal.begin();
    // It rests for a while before it looks again.
    while client.flush().is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not come back"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(mortal.durable()[4096..8192], [1; 4096]);
}

/// A failed flush says nothing of what is durable, so that the next one must not
/// be believed before all is there again.
#[test]
fn after_a_flush_that_failed_all_is_written_again() {
    let mut mortal = Mortal::new();
    let client = mortal.client();
    client.write_at(0, &[3; 4096]).unwrap();
    let (_, dead) = mortal.life.as_ref().unwrap();
    dead.store(true, Ordering::SeqCst);
    let error = client.flush().unwrap_err();
    assert_eq!(error.errno(), 5);
    mortal.kill();
    mortal.begin();
    client.flush().unwrap();
    assert_eq!(mortal.durable()[..4096], [3; 4096]);
}

#[test]
fn another_export_under_the_same_name_is_refused() {
    let folder = Folder::new();
    let socket = folder.path("s");
    let start = |size, access| Running::start(&socket, Arc::new(RamDevice::new(size)), access);
    for (size, access, expected) in [
        (
            2 * SIZE,
            Access::Write,
            "is now 4194304 bytes for reading and writing",
        ),
        (SIZE, Access::Read, "is now 2097152 bytes for reading only"),
    ] {
        let served = start(SIZE, Access::Write);
        let client = NbdDevice::open(&uri(&socket)).unwrap();
        client.write_at(0, &[1; 512]).unwrap();
        drop(served);
        let other = start(size, access);
        let mut bytes = [0; 512];
        let text = told(&client.read_at(0, &mut bytes).unwrap_err());
        assert!(text.contains(expected), "{text}");
        drop(other);
        let _served = start(SIZE, Access::Write);
        let begun = Instant::now();
        while client.read_at(0, &mut bytes).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not seen");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(bytes, [1; 512], "it was written again");
    }
}

#[test]
fn a_read_only_export_is_only_read() {
    let folder = Folder::new();
    let socket = folder.path("s");
    let _served = Running::start(&socket, Arc::new(RamDevice::new(SIZE)), Access::Read);
    let client = NbdDevice::open(&uri(&socket)).unwrap();
    assert!(client.is_read_only());
    client.read_at(0, &mut [0; 512]).unwrap();
    assert!(matches!(
        client.write_at(0, &[1; 512]),
        Err(BlockError::ReadOnly)
    ));
    client.flush().unwrap();
}

#[test]
fn who_is_not_there_is_said_at_once() {
    let folder = Folder::new();
    let socket = folder.path("s");
    let refused = NbdDevice::open(&uri(&socket)).err().unwrap();
    assert!(
        matches!(refused, ClientError::Connect { .. }),
        "{refused:?}"
    );
    let _served = Running::start(&socket, Arc::new(RamDevice::new(SIZE)), Access::Write);
    let text = format!("nbd+unix:///other?socket={}", socket.display());
    let other = super::Uri::parse(text.as_ref()).unwrap();
    let refused = NbdDevice::open(&other).err().unwrap();
    assert!(
        matches!(&refused, ClientError::NoExport { name, .. } if name == "other"),
        "{refused:?}"
    );
    assert!(refused.is_bad_input());
}
