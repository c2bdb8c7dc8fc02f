//! Tests of private functions, and of headers that no program writes.

mod create;
mod cuts;
mod eras;
mod hostile;
mod volumes;

use super::layers::ENCRYPTED_BYTES;
use super::*;
use crate::{CryptDevice, Hash, Limits, Secret, Terms, VolumeError};
use block::{BlockDevice, ByteRange, RamDevice};
use cipher::{CipherSpec, Key};
use std::ops::ControlFlow;

const PASSPHRASE: &[u8] = b"passphrase";
const SHA512: Prf = Prf::Pbkdf2(Hash::Sha512);
const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];

/// A device with a data area of 256 KiB, between areas for headers.
const SIZE: u64 = 2 * HEADERS_BYTES + (256 << 10);

fn passphrase() -> Secret {
    Secret::Passphrase(Key::from_slice(PASSPHRASE))
}

/// The header of a volume on such a device, with nothing wrong.
fn good_header(place: Place) -> Header {
    let length = match place.is_hidden() {
        true => 64 << 10,
        false => SIZE - 2 * HEADERS_BYTES,
    };
    Header {
        family: Family::TrueCrypt,
        version: 5,
        least_program: 0x0700,
        volume_time: 0,
        header_time: 0,
        hidden_size: if place.is_hidden() { length } else { 0 },
        volume_size: length,
        data_offset: SIZE - HEADERS_BYTES - length,
        encrypted_bytes: length,
        flags: 0,
        sector_size: 512,
        key_area: Key::from_slice(&(0..=255).collect::<Vec<u8>>()),
    }
}

/// Writes the header, changed by `change`, where `place` has it.
fn device_with(place: Place, offset: u64, change: impl Fn(&mut [u8])) -> RamDevice {
    let device = RamDevice::new(SIZE);
    let mut sector = good_header(place).to_sector();
    change(&mut sector[..ENCRYPTED_BYTES]);
    let sealed = Sealing::new(SHA512).seal_with(
        sector,
        Family::TrueCrypt,
        spec("aes-xts-plain64"),
        &Key::from_slice(PASSPHRASE),
        SALT,
        &Limits::default(),
    );
    device.write_at(offset, &sealed.unwrap()).unwrap();
    device
}

fn spec(notation: &str) -> CipherSpec {
    notation.parse().unwrap()
}

fn opening(family: Family, place: Place, prf: Prf) -> Opening {
    Opening {
        place,
        prf: Some(prf),
        ..Opening::new(family)
    }
}

fn silent(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The whole way to the device.
fn open<'a>(
    opening: &Opening,
    device: &'a RamDevice,
) -> Result<(Unlocked, CryptDevice<&'a RamDevice>), VolumeError> {
    let unlocked = opening.unlock(device, &passphrase(), &Limits::default(), &silent)?;
    let mapping = unlocked.mapping(device)?;
    Ok((unlocked, CryptDevice::new(device, mapping)?))
}

/// The header of an encrypted system is on its disk. Each partition is opened by it.
#[test]
fn partitions_of_an_encrypted_system_open_by_the_header_of_their_disk() {
    let disk = device_with(Place::System, SYSTEM_AT, |_| {});
    let good = good_header(Place::System);
    let (from, to) = (good.data_offset, good.data_offset + good.volume_size);
    let opening = opening(Family::TrueCrypt, Place::System, SHA512);
    let (_, whole) = open(&opening, &disk).unwrap();
    let open_partition = |start: u64, length: u64| {
        let partition = block::layer::Slice::new(&disk, ByteRange::new(start, length)).unwrap();
        let opening = crate::Opening::Tcrypt(Box::new(Opening {
            partition: Some(start),
            ..opening.clone()
        }));
        let (access, limits) = (crate::Access::Write, Limits::default());
        let terms = Terms {
            access,
            ..Terms::reading(&limits, &silent)
        };
        let opened = opening.unlock(&disk, &partition, &passphrase(), &terms)?;
        let view = opened.device::<&dyn BlockDevice>(&disk, &partition)?;
        let mut plain = vec![0; view.geometry().size as usize];
        view.read_at(0, &mut plain)?;
        Ok::<_, VolumeError>(plain)
    };
    for (start, length, there) in [
        (from, to - from, to - from),
        (from + 8192, 4096, 4096),
        // The rest of a partition that ends behind the system is not encrypted.
        (to - 4096, 8192, 4096),
    ] {
        let mut expected = vec![0; there as usize];
        whole.read_at(start - from, &mut expected).unwrap();
        assert!(
            open_partition(start, length).unwrap() == expected,
            "{start}"
        );
    }
    for start in [from - 4096, to] {
        let refused = open_partition(start, 4096).map(drop);
        let refused = matches!(refused, Err(VolumeError::Impossible { .. }));
        assert!(refused, "{start}");
    }
}

#[test]
fn a_header_reads_as_it_was_written() {
    for (place, offset) in [
        (Place::Normal, 0),
        (Place::NormalBackup, SIZE - HEADERS_BYTES),
        (Place::Hidden, HIDDEN_AT),
        (Place::HiddenBackup, SIZE - HIDDEN_AT),
    ] {
        let device = device_with(place, offset, |_| {});
        let (unlocked, volume) = open(&opening(Family::TrueCrypt, place, SHA512), &device).unwrap();
        let good = good_header(place);
        assert_eq!((unlocked.offset, unlocked.place), (offset, place));
        assert_eq!(unlocked.header.to_sector(), good.to_sector());
        assert_eq!(volume.geometry().size, good.volume_size);
    }
}

/// Computed with the CRC-32 of zlib.
#[test]
fn key_files_are_mixed_into_the_pool_that_the_passphrase_needs() {
    let content: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
    let mut keyfiles = Keyfiles::none();
    keyfiles.add(b"second").unwrap();
    keyfiles.add(&content).unwrap();
    assert_eq!(keyfiles.count(), 2);
    let password = |family, passphrase: &[u8]| -> String {
        let password = keyfiles.password(family, passphrase).unwrap();
        let bytes = password.as_bytes().iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    };
    let short = "bae85b5a16b9e964352f031e569c3ca6427cbf469e4fb6ac377ba2b92afc46dd\
         ff7ccb1270801aa04726835c46af5be537216008caf60fd0440fb66967de438e";
    assert_eq!(password(Family::VeraCrypt, b"pass"), short);
    assert_eq!(password(Family::TrueCrypt, b"pass"), short);
    let long = "8ea611187a4045c3b69deb87840b2a8f422ef869df1005279455424457d2b176\
         1e203a73d7abcf9c03352b93f9affd8a4f8b1cd844a3bab35d4ef60357fba565\
         4ca99f9764416c69475ae05f9a59dadfc8168fa58707794d6bee283d9bf25d2f\
         a9245967619d13cc0cb9209115c82623b05e0cf84e1b1de5af89882ed8ab66f1";
    assert_eq!(password(Family::VeraCrypt, &[200; 65]), long);
}

#[test]
fn only_the_first_mebibyte_of_a_key_file_counts() {
    let mut content = vec![1; Keyfiles::MOST_BYTES];
    let (mut exact, mut longer) = (Keyfiles::none(), Keyfiles::none());
    exact.add(&content).unwrap();
    content.push(2);
    longer.add(&content).unwrap();
    let password = |keyfiles: &Keyfiles| keyfiles.password(Family::VeraCrypt, b"").unwrap();
    assert_eq!(password(&exact).as_bytes(), password(&longer).as_bytes());
    assert!(Keyfiles::none().add(&[]).is_err());
}

#[test]
fn costs_are_those_of_both_programs() {
    let kdf = |family, place, name, pim| -> String {
        let kdf = Prf::named(name).unwrap().kdf(family, place, pim);
        kdf.map_or_else(|error| error.to_string(), |kdf| kdf.to_string())
    };
    let truecrypt = |place, name| kdf(Family::TrueCrypt, place, name, None);
    assert_eq!(
        truecrypt(Place::Normal, "ripemd160"),
        "pbkdf2-ripemd160-2000"
    );
    assert_eq!(
        truecrypt(Place::System, "ripemd160"),
        "pbkdf2-ripemd160-1000"
    );
    assert_eq!(truecrypt(Place::Hidden, "sha512"), "pbkdf2-sha512-1000");
    assert_eq!(
        truecrypt(Place::Normal, "whirlpool"),
        "pbkdf2-whirlpool-1000"
    );
    assert_eq!(truecrypt(Place::Normal, "sha1"), "pbkdf2-sha1-2000");
    assert_eq!(
        truecrypt(Place::Normal, "sha256"),
        "TrueCrypt has no key derivation with sha256"
    );
    for (place, name, pim, expected) in [
        (Place::Normal, "sha512", 0, "pbkdf2-sha512-500000"),
        (Place::System, "sha512", 0, "pbkdf2-sha512-500000"),
        (Place::Hidden, "whirlpool", 1, "pbkdf2-whirlpool-16000"),
        (Place::System, "whirlpool", 98, "pbkdf2-whirlpool-113000"),
        (Place::Normal, "sha256", 485, "pbkdf2-sha256-500000"),
        (Place::System, "sha256", 0, "pbkdf2-sha256-200000"),
        (Place::System, "blake2s", 98, "pbkdf2-blake2s-256-200704"),
        (Place::Normal, "streebog", 0, "pbkdf2-stribog512-500000"),
        (Place::Normal, "ripemd160", 0, "pbkdf2-ripemd160-655331"),
        (Place::System, "ripemd160", 0, "pbkdf2-ripemd160-327661"),
        (
            Place::Normal,
            "sha512",
            2_147_468,
            "pbkdf2-sha512-2147483000",
        ),
        (
            Place::Normal,
            "sha512",
            2_147_469,
            "the PIM is 2147469, and the maximum is 2147468",
        ),
        (
            Place::System,
            "sha256",
            65_536,
            "the PIM is 65536, and the maximum is 65535",
        ),
        (Place::Normal, "argon2id", 0, "argon2id-6-425984-1"),
        (Place::Normal, "argon2id", 1, "argon2id-3-65536-1"),
        (Place::Normal, "argon2id", 31, "argon2id-13-1048576-1"),
        (Place::Normal, "argon2id", 32, "argon2id-14-1048576-1"),
        (Place::Normal, "argon2id", 50, "argon2id-32-1048576-1"),
        (
            Place::Normal,
            "sha1",
            0,
            "VeraCrypt has no key derivation with sha1",
        ),
    ] {
        assert_eq!(kdf(Family::VeraCrypt, place, name, Some(pim)), expected);
    }
    for family in [Family::TrueCrypt, Family::VeraCrypt] {
        for &prf in Prf::all(family) {
            assert_eq!(Prf::named(prf.name()), Some(prf));
        }
    }
}
