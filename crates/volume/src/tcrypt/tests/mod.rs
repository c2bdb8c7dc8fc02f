//! Tests of private functions, and of headers that no program writes.

mod create;
mod cuts;
mod eras;
mod hostile;

use super::Family::{TrueCrypt, VeraCrypt};
use super::Place::{Hidden, HiddenBackup, Normal, NormalBackup, System};
use super::layers::{ENCRYPTED_BYTES, Sector};
use super::seal::Sealed;
use super::*;
use crate::operate::unwatched;
use crate::{CryptDevice, Hash, Limits, Secret, Terms, VolumeError};
use block::{BlockDevice, ByteRange, RamDevice};
use cipher::{Algorithm, CipherSpec, Key};

const OLD: &[u8] = b"old passphrase";
const NEW: &[u8] = b"new passphrase";
const NORMAL: [Place; 2] = [Normal, NormalBackup];
const HIDDEN: [Place; 2] = [Hidden, HiddenBackup];
const SHA512: Prf = Prf::Pbkdf2(Hash::Sha512);
const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];

/// A device with a data area of 256 KiB, between areas for headers.
const SIZE: u64 = 2 * HEADERS_BYTES + (256 << 10);

fn key(bytes: &[u8]) -> Key {
    Key::from_slice(bytes)
}

/// The header of a volume on such a device, with nothing wrong.
fn good_header(place: Place) -> Header {
    let length = match place.is_hidden() {
        true => 64 << 10,
        false => SIZE - 2 * HEADERS_BYTES,
    };
    Header {
        family: TrueCrypt,
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
        key_area: key(&(0..=255).collect::<Vec<u8>>()),
    }
}

/// Encrypts a header under [`OLD`].
fn sealed(sector: Sector) -> Sealed {
    let (spec, limits) = (spec("aes-xts-plain64"), Limits::default());
    let sealed = sealing().seal_with(sector, TrueCrypt, spec, &key(OLD), SALT, &limits);
    sealed.unwrap()
}

/// Writes the header, changed by `change`, where `place` has it.
fn device_with(place: Place, offset: u64, change: impl Fn(&mut [u8])) -> RamDevice {
    let device = RamDevice::new(SIZE);
    let mut sector = good_header(place).to_sector();
    change(&mut sector[..ENCRYPTED_BYTES]);
    device.write_at(offset, &sealed(sector)).unwrap();
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

/// The whole way to the device.
fn open<'a>(
    opening: &Opening,
    device: &'a RamDevice,
) -> Result<(Unlocked, CryptDevice<&'a RamDevice>), VolumeError> {
    let secret = Secret::Passphrase(key(OLD));
    let unlocked = opening.unlock(device, &secret, &Limits::default(), &unwatched)?;
    let mapping = unlocked.mapping(device)?;
    Ok((unlocked, CryptDevice::new(device, mapping)?))
}

fn sealing() -> Sealing {
    Sealing::new(SHA512)
}

/// TrueCrypt, because its derivations are cheap.
fn creation() -> Creation {
    Creation {
        family: TrueCrypt,
        algorithms: vec![Algorithm::Aes],
        sealing: sealing(),
    }
}

fn create(device: &dyn BlockDevice, passphrase: &[u8]) -> Result<Unlocked, VolumeError> {
    creation().create(device, &key(passphrase), &Limits::default())
}

/// Makes a hidden volume of `size` bytes, under [`NEW`].
fn hide(device: &dyn BlockDevice, outer: &Unlocked, size: u64) -> Result<Unlocked, VolumeError> {
    creation().create_hidden(device, outer, size, &key(NEW), &Limits::default())
}

/// Gives the volume the passphrase [`NEW`].
fn change(opened: &mut Unlocked, device: &dyn BlockDevice) -> Result<(), VolumeError> {
    opened.change_passphrase(device, &sealing(), &key(NEW), &Limits::default())
}

fn restore(opened: &Unlocked, device: &dyn BlockDevice) -> Result<(), VolumeError> {
    opened.restore(device, &sealing(), &key(NEW), &Limits::default())
}

fn grow(
    opened: &mut Unlocked,
    device: &dyn BlockDevice,
    passphrase: &[u8],
) -> Result<(), VolumeError> {
    opened.grow(device, &sealing(), &key(passphrase), &Limits::default())
}

fn opens(device: &dyn BlockDevice, place: Place, passphrase: &[u8]) -> Option<Unlocked> {
    let secret = Secret::Passphrase(key(passphrase));
    let opening = opening(TrueCrypt, place, SHA512);
    match opening.unlock(device, &secret, &Limits::default(), &unwatched) {
        Ok(unlocked) => Some(unlocked),
        Err(VolumeError::NoHeaderFits) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The volume as a device.
fn volume<'a>(unlocked: &Unlocked, device: &'a RamDevice) -> CryptDevice<&'a RamDevice> {
    CryptDevice::new(device, unlocked.mapping(device).unwrap()).unwrap()
}

fn pattern(length: u64) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// All the bytes of `device`.
fn bytes(device: &dyn BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

fn content(unlocked: &Unlocked, device: &RamDevice) -> Vec<u8> {
    bytes(&volume(unlocked, device))
}

/// The content of the volume that opens with one of the passphrases, from the
/// header or its copy.
fn rescued(device: &RamDevice, places: [Place; 2], passphrases: &[&[u8]]) -> Option<Vec<u8>> {
    let mut opened = places
        .iter()
        .flat_map(|place| passphrases.iter().map(|word| opens(device, *place, word)));
    opened.find_map(|opened| Some(content(&opened?, device)))
}

/// A device with a normal volume full of data under [`OLD`].
fn full() -> (RamDevice, Vec<u8>) {
    let device = RamDevice::new(SIZE);
    let made = create(&device, OLD).unwrap();
    let data = pattern(SIZE - 2 * HEADERS_BYTES);
    volume(&made, &device).write_at(0, &data).unwrap();
    (device, data)
}

/// A device of `size` bytes that begins like `device`.
fn enlarged(device: &RamDevice, size: u64) -> RamDevice {
    let larger = RamDevice::new(size);
    larger.write_at(0, &bytes(device)).unwrap();
    larger
}

/// The header of an encrypted system is on its disk. Each partition is opened by it.
#[test]
fn partitions_of_an_encrypted_system_open_by_the_header_of_their_disk() {
    let disk = device_with(System, SYSTEM_AT, |_| {});
    let good = good_header(System);
    let (from, to) = (good.data_offset, good.data_offset + good.volume_size);
    let opening = opening(TrueCrypt, System, SHA512);
    let (_, whole) = open(&opening, &disk).unwrap();
    let open_partition = |start: u64, length: u64| {
        let partition = block::layer::Slice::new(&disk, ByteRange::new(start, length)).unwrap();
        let opening = crate::Opening::Tcrypt(Box::new(Opening {
            partition: Some(start),
            ..opening.clone()
        }));
        let limits = Limits::default();
        let terms = Terms {
            access: crate::Access::Write,
            ..Terms::reading(&limits, &unwatched)
        };
        let secret = Secret::Passphrase(key(OLD));
        let opened = opening.unlock(&disk, &partition, &secret, &terms)?;
        let view = opened.device::<&dyn BlockDevice>(&disk, &partition)?;
        Ok::<_, VolumeError>(bytes(&*view))
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
        (Normal, 0),
        (NormalBackup, SIZE - HEADERS_BYTES),
        (Hidden, HIDDEN_AT),
        (HiddenBackup, SIZE - HIDDEN_AT),
    ] {
        let device = device_with(place, offset, |_| {});
        let (unlocked, volume) = open(&opening(TrueCrypt, place, SHA512), &device).unwrap();
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
    assert_eq!(password(VeraCrypt, b"pass"), short);
    assert_eq!(password(TrueCrypt, b"pass"), short);
    let long = "8ea611187a4045c3b69deb87840b2a8f422ef869df1005279455424457d2b176\
         1e203a73d7abcf9c03352b93f9affd8a4f8b1cd844a3bab35d4ef60357fba565\
         4ca99f9764416c69475ae05f9a59dadfc8168fa58707794d6bee283d9bf25d2f\
         a9245967619d13cc0cb9209115c82623b05e0cf84e1b1de5af89882ed8ab66f1";
    assert_eq!(password(VeraCrypt, &[200; 65]), long);
}

#[test]
fn only_the_first_mebibyte_of_a_key_file_counts() {
    let mut content = vec![1; Keyfiles::MOST_BYTES];
    let (mut exact, mut longer) = (Keyfiles::none(), Keyfiles::none());
    exact.add(&content).unwrap();
    content.push(2);
    longer.add(&content).unwrap();
    let password = |keyfiles: &Keyfiles| keyfiles.password(VeraCrypt, b"").unwrap();
    assert_eq!(password(&exact).as_bytes(), password(&longer).as_bytes());
    assert!(Keyfiles::none().add(&[]).is_err());
}

/// Program, header, hash and PIM, and the derivation that they make.
const COSTS: &str = "\
TrueCrypt Normal ripemd160 -: pbkdf2-ripemd160-2000
TrueCrypt System ripemd160 -: pbkdf2-ripemd160-1000
TrueCrypt Hidden sha512 -: pbkdf2-sha512-1000
TrueCrypt Normal whirlpool -: pbkdf2-whirlpool-1000
TrueCrypt Normal sha1 -: pbkdf2-sha1-2000
TrueCrypt Normal sha256 -: TrueCrypt has no key derivation with sha256
VeraCrypt Normal sha512 0: pbkdf2-sha512-500000
VeraCrypt System sha512 0: pbkdf2-sha512-500000
VeraCrypt Hidden whirlpool 1: pbkdf2-whirlpool-16000
VeraCrypt System whirlpool 98: pbkdf2-whirlpool-113000
VeraCrypt Normal sha256 485: pbkdf2-sha256-500000
VeraCrypt System sha256 0: pbkdf2-sha256-200000
VeraCrypt System blake2s 98: pbkdf2-blake2s-256-200704
VeraCrypt Normal streebog 0: pbkdf2-stribog512-500000
VeraCrypt Normal ripemd160 0: pbkdf2-ripemd160-655331
VeraCrypt System ripemd160 0: pbkdf2-ripemd160-327661
VeraCrypt Normal sha512 2147468: pbkdf2-sha512-2147483000
VeraCrypt Normal sha512 2147469: the PIM is 2147469, and the maximum is 2147468
VeraCrypt System sha256 65536: the PIM is 65536, and the maximum is 65535
VeraCrypt Normal argon2id 0: argon2id-6-425984-1
VeraCrypt Normal argon2id 1: argon2id-3-65536-1
VeraCrypt Normal argon2id 31: argon2id-13-1048576-1
VeraCrypt Normal argon2id 32: argon2id-14-1048576-1
VeraCrypt Normal argon2id 50: argon2id-32-1048576-1
VeraCrypt Normal sha1 0: VeraCrypt has no key derivation with sha1";

#[test]
fn costs_are_those_of_both_programs() {
    for line in COSTS.lines() {
        let (given, expected) = line.split_once(": ").unwrap();
        let [family, place, name, pim] = given.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let mut families = [TrueCrypt, VeraCrypt].into_iter();
        let family = families.find(|it| format!("{it:?}") == family).unwrap();
        let mut places = [Normal, Hidden, System].into_iter();
        let place = places.find(|it| format!("{it:?}") == place).unwrap();
        let kdf = Prf::named(name)
            .unwrap()
            .kdf(family, place, pim.parse().ok());
        let said = kdf.map_or_else(|error| error.to_string(), |kdf| kdf.to_string());
        assert_eq!(said, expected, "{line}");
    }
    for family in [TrueCrypt, VeraCrypt] {
        for &prf in Prf::all(family) {
            assert_eq!(Prf::named(prf.name()), Some(prf));
        }
    }
}
