//! The stored ranges of a volume in a file with holes.

use block::{BlockDevice, ByteRange, Extent, FileDevice, FileOptions};
use cipher::{Key, SectorSize};
use cryptmark_volume::luks2::{Creation, Header, KeyslotOptions};
use cryptmark_volume::{Access, Hash, Kdf, Limits, Opening, Secret, Storage, Terms};
use std::ops::ControlFlow;

const DATA_OFFSET: u64 = 1 << 20;
const SIZE: u64 = 1 << 20;

fn key(bytes: &[u8]) -> Key {
    Key::from_slice(bytes)
}

/// Opens the volume, discards in its middle, and asks what is stored.
fn extents_after_discard(allow_discards: bool) -> Option<Vec<Extent>> {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(DATA_OFFSET + SIZE).unwrap();
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(file.path(), &options).unwrap();
    if device.geometry().discard_granularity.is_none() {
        println!("skipped: the file system knows no holes");
        return None;
    }
    let creation = Creation {
        cipher: cryptmark_volume::luks2::DataCipher::Plain("aes-xts-plain64".parse().unwrap()),
        key_bytes: 64,
        sector_size: SectorSize::B4096,
        keyslot: KeyslotOptions::new(Kdf::Pbkdf2 {
            hash: Hash::Sha256,
            iterations: 1000,
        }),
        data_offset: Some(DATA_OFFSET),
        detached: false,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    Header::create(&device, &creation, &key(&[7; 64]), &key(b"a passphrase")).unwrap();
    let mut opened = Opening::Luks2 { slot: None }
        .unlock(
            &device,
            &device,
            &Secret::Passphrase(key(b"a passphrase")),
            &Terms {
                access: Access::Write,
                ..Terms::reading(&Limits::default(), &|_, _| ControlFlow::Continue(()))
            },
        )
        .unwrap();
    if allow_discards {
        opened = opened.allowing_discards().reading_holes();
    }
    let allocation = opened.allocation(&device, &device);
    let plain = opened.device(&device, &device).unwrap();
    // Half of it was never written.
    plain.write_at(0, &vec![0; SIZE as usize / 2]).unwrap();
    if allow_discards {
        plain.discard(ByteRange::new(131_072, 65_536)).unwrap();
    }
    let below = |storage, range| {
        assert_eq!(storage, Storage::Data);
        device.extents(range)
    };
    let extents = allocation.extents(ByteRange::new(0, SIZE), below).unwrap();
    for extent in extents.iter().filter(|extent| extent.hole) {
        let mut bytes = vec![1; extent.range.length as usize];
        plain.read_at(extent.range.offset, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0), "{extent:?}");
    }
    Some(extents)
}

#[test]
fn what_was_discarded_or_never_written_is_a_hole() {
    let Some(extents) = extents_after_discard(true) else {
        return;
    };
    let found: Vec<(u64, u64, bool)> = extents
        .iter()
        .map(|extent| (extent.range.offset, extent.range.length, extent.hole))
        .collect();
    assert_eq!(
        found,
        [
            (0, 131_072, false),
            (131_072, 65_536, true),
            (196_608, 327_680, false),
            (524_288, 524_288, true),
        ]
    );
}

/// Holes are noise to who does not take zeros for them.
#[test]
fn without_discards_nothing_is_a_hole() {
    if let Some(extents) = extents_after_discard(false) {
        let range = ByteRange::new(0, SIZE);
        assert_eq!(extents, [Extent { range, hole: false }]);
    }
}
