//! Devices that cannot read some of their bytes, and headers of which one copy, or
//! one keyslot, is enough.

use block::layer::{Effect, Fault, Rule, Trigger};
use block::{BlockDevice, ByteRange, OperationKind, RamDevice};
use cipher::Key;
use cryptmark_volume::luks2::{Certainty, Creation, Header, KeyslotOptions, Place, Recovered};
use cryptmark_volume::tcrypt::{self, Family, Opening, Prf, Sealing};
use cryptmark_volume::{Format, Hash, Kdf, Limits, LuksHeader, Secret, VolumeError, luks1};
use std::ops::ControlFlow;

const EIO: i32 = 5;
const KIB: u64 = 1 << 10;
const SIZE: u64 = 17 << 20;

const KDF: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: 1000,
};

fn passphrase(name: &str) -> Key {
    Key::from_slice(name.as_bytes())
}

fn secret(name: &str) -> Secret {
    Secret::Passphrase(passphrase(name))
}

/// The device, which cannot read these bytes.
fn without(device: &RamDevice, from: u64, length: u64) -> Fault<&RamDevice> {
    Fault::new(
        device,
        [Rule::on(
            OperationKind::Read,
            Trigger::Touching(ByteRange::new(from, length)),
            Effect::Fail(EIO),
        )],
    )
}

/// A volume of LUKS2 that `one` and `two` open.
fn luks2() -> RamDevice {
    let device = RamDevice::new(SIZE);
    let key = Key::random(64).unwrap();
    let creation = Creation::new(KDF);
    let mut header = Header::create(&device, &creation, &key, &passphrase("one")).unwrap();
    let options = KeyslotOptions::new(KDF);
    header
        .add_key(&device, &key, &passphrase("two"), &options, None)
        .unwrap();
    device
}

fn slot(header: &Header, device: &dyn BlockDevice, name: &str) -> Result<Option<u32>, VolumeError> {
    let unlocked = header.unlock(device, &secret(name), None, &Limits::default())?;
    Ok(unlocked.slot)
}

#[test]
fn each_copy_of_luks2_alone_is_enough() {
    for (from, length, left) in [
        (0, 4 * KIB, Place::Secondary),
        (0, 512, Place::Secondary),
        (0, 16 * KIB, Place::Secondary),
        (5 * KIB, 1, Place::Secondary),
        (16 * KIB, 16 * KIB, Place::Primary),
        (16 * KIB, 1, Place::Primary),
        (31 * KIB, 1, Place::Primary),
    ] {
        // A copy that is written in part may be whole all the same.
        let device = luks2();
        let bad = without(&device, from, length);
        assert_eq!(Format::detect(&bad).unwrap(), Some(Format::Luks2));
        let header = Header::read(&bad).unwrap();
        assert_eq!(header.recovered, Recovered::Only(left), "{from}");
        assert_eq!(slot(&header, &bad, "one").unwrap(), Some(0));
        assert!(LuksHeader::read(&bad).is_ok());
        // Unreadable bytes hold no known data; a write may mend them.
        assert_eq!(header.stranger(&bad).unwrap(), None);
        assert!(header.clone().repair(&device, false).unwrap());
        assert_eq!(Header::read(&device).unwrap().recovered, Recovered::Both);
        // A place that stays bad is a failure, and the good copy stays.
        let failed = Header::read(&bad).unwrap().repair(&bad, false);
        assert!(matches!(failed, Err(VolumeError::Block(_))), "{failed:?}");
        assert_eq!(
            slot(&Header::read(&bad).unwrap(), &bad, "two").unwrap(),
            Some(1)
        );
    }
    let device = luks2();
    let both = without(&device, 0, 32 * KIB);
    assert!(matches!(Header::read(&both), Err(VolumeError::Block(_))));
    assert!(Format::detect(&both).is_err());
}

#[test]
fn keyslots_that_cannot_be_read_close_no_others() {
    let device = luks2();
    let header = Header::read(&device).unwrap();
    let area = header.metadata.keyslots[&0].area().unwrap();
    let bad = without(&device, area.offset, 1);
    assert_eq!(slot(&header, &bad, "two").unwrap(), Some(1));
    assert!(matches!(
        slot(&header, &bad, "one"),
        Err(VolumeError::Block(_))
    ));
    assert_eq!(header.lost_keyslots(&bad).unwrap(), [0]);

    let device = RamDevice::new(SIZE);
    let creation = luks1::Creation {
        spec: "aes-xts-plain64".parse().unwrap(),
        key_bytes: 64,
        hash: Hash::Sha256,
        iterations: 1000,
        payload_offset: None,
        detached: false,
        uuid: None,
    };
    let key = Key::random(64).unwrap();
    let mut header = luks1::Header::create(&device, &creation, &key, &passphrase("one")).unwrap();
    header
        .add_key(&device, &key, &passphrase("two"), 1000, None)
        .unwrap();
    let bad = without(&device, header.keyslots[0].offset, 1);
    let open = |name: &str| {
        let unlocked = header.unlock(&bad, &secret(name), None, &Limits::default())?;
        Ok(unlocked.slot)
    };
    assert_eq!(open("two").unwrap(), Some(1));
    assert!(matches!(open("one"), Err(VolumeError::Block(_))));
    assert_eq!(header.lost_keyslots(&bad).unwrap(), [0]);
}

#[test]
fn the_copy_of_a_veracrypt_header_stands_in_for_it() {
    let device = RamDevice::new(1 << 20);
    let creation = tcrypt::Creation {
        family: Family::VeraCrypt,
        algorithms: "aes-xts-plain64"
            .parse::<cipher::CipherSpec>()
            .unwrap()
            .algorithms()
            .to_vec(),
        sealing: Sealing {
            pim: Some(1),
            ..Sealing::new(Prf::Pbkdf2(Hash::Sha512))
        },
    };
    creation
        .create(&device, &passphrase("one"), &Limits::default())
        .unwrap();
    let opening = Opening {
        pim: Some(1),
        prf: Some(Prf::Pbkdf2(Hash::Sha512)),
        ..Opening::new(Family::VeraCrypt)
    };
    let bad = without(&device, 0, 512);
    let limits = Limits::default();
    let watch = |_, _| ControlFlow::Continue(());
    let unlocked = opening
        .unlock(&bad, &secret("one"), &limits, &watch)
        .unwrap();
    assert_eq!(unlocked.place, tcrypt::Place::NormalBackup);
    let wrong = opening.unlock(&bad, &secret("two"), &limits, &watch);
    assert!(matches!(wrong, Err(VolumeError::NoHeaderFits)));
}

/// A header is rebuilt from the remains of the two copies, some of them unreadable.
#[test]
fn a_header_is_rebuilt_from_what_can_be_read() {
    let device = luks2();
    // The magics are gone, and the first copy cannot be read.
    for offset in [0, 16 * KIB] {
        let mut sector = [0; 512];
        device.read_at(offset, &mut sector).unwrap();
        sector[..6].fill(0);
        device.write_at(offset, &sector).unwrap();
    }
    let rebuilt = Header::rebuild(&device, None).unwrap();
    assert_eq!(rebuilt.len(), 1, "both copies say the same");
    assert_eq!(rebuilt[0].certainty, Certainty::Sealed);
    let bad = without(&device, 0, 16 * KIB);
    let rebuilt = Header::rebuild(&bad, None).unwrap();
    assert_eq!(rebuilt[0].certainty, Certainty::Sealed);
    assert_eq!(rebuilt[0].offset, 16 * KIB);
    // Binary headers that cannot be read: only the metadata are left.
    let bad = without(&device, 0, 4 * KIB);
    let rebuilt = Header::rebuild(&bad, None).unwrap();
    assert_eq!(rebuilt[0].offset, 16 * KIB, "a checksum counts more");
    let all = without(&device, 0, 32 * KIB);
    assert!(matches!(
        Header::rebuild(&all, None),
        Err(VolumeError::NotThis { .. })
    ));
    let header = rebuilt.into_iter().next().unwrap().write(&device).unwrap();
    assert_eq!(slot(&header, &device, "one").unwrap(), Some(0));
    assert_eq!(Header::read(&device).unwrap().recovered, Recovered::Both);
}

/// No damage makes the search for remains fail, or find what is not there.
#[test]
fn remains_are_looked_for_in_anything() {
    for fill in [0, 0xff, b'{', b'['] {
        let device = RamDevice::new(SIZE);
        device.write_at(0, &vec![fill; 9 << 20]).unwrap();
        assert!(!LuksHeader::has_remains(&device), "{fill}");
    }
    for size in [0, 512, 4096, 4608, 16 << 10, (16 << 10) + 512] {
        assert!(!LuksHeader::has_remains(&RamDevice::new(size)), "{size}");
    }
}
