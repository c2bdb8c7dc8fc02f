//! Volumes with cheap key derivations, and what is in them.

use super::*;
use cipher::Algorithm;

pub(super) const OLD: &[u8] = b"old passphrase";
pub(super) const NEW: &[u8] = b"new passphrase";

pub(super) fn key(bytes: &[u8]) -> Key {
    Key::from_slice(bytes)
}

/// TrueCrypt, because its derivations are cheap.
pub(super) fn creation() -> Creation {
    Creation {
        family: Family::TrueCrypt,
        algorithms: vec![Algorithm::Aes],
        sealing: Sealing::new(SHA512),
    }
}

pub(super) fn opens(device: &dyn BlockDevice, place: Place, passphrase: &[u8]) -> Option<Unlocked> {
    let opening = opening(Family::TrueCrypt, place, SHA512);
    let secret = Secret::Passphrase(key(passphrase));
    match opening.unlock(device, &secret, &Limits::default(), &silent) {
        Ok(unlocked) => Some(unlocked),
        Err(VolumeError::NoHeaderFits) => None,
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn create(device: &dyn BlockDevice, passphrase: &[u8]) -> Result<Unlocked, VolumeError> {
    creation().create(device, &key(passphrase), &Limits::default())
}

/// The volume as a device.
pub(super) fn volume<'a>(unlocked: &Unlocked, device: &'a RamDevice) -> CryptDevice<&'a RamDevice> {
    CryptDevice::new(device, unlocked.mapping(device).unwrap()).unwrap()
}

pub(super) fn pattern(length: u64) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

pub(super) fn content(unlocked: &Unlocked, device: &RamDevice) -> Vec<u8> {
    let volume = volume(unlocked, device);
    let mut data = vec![0; volume.geometry().size as usize];
    volume.read_at(0, &mut data).unwrap();
    data
}

/// The content of the volume that opens with one of the passphrases, from the
/// header or its copy.
pub(super) fn rescued(
    device: &RamDevice,
    places: [Place; 2],
    passphrases: &[&[u8]],
) -> Option<Vec<u8>> {
    let tried = places.into_iter().flat_map(|place| {
        passphrases
            .iter()
            .map(move |passphrase| (place, *passphrase))
    });
    let opened = tried
        .filter_map(|(place, passphrase)| opens(device, place, passphrase))
        .next();
    opened.map(|opened| content(&opened, device))
}

pub(super) const NORMAL: [Place; 2] = [Place::Normal, Place::NormalBackup];
pub(super) const HIDDEN: [Place; 2] = [Place::Hidden, Place::HiddenBackup];

/// A device with a normal volume full of data under [`OLD`].
pub(super) fn full() -> (RamDevice, Vec<u8>) {
    let device = RamDevice::new(SIZE);
    let made = create(&device, OLD).unwrap();
    let data = pattern(SIZE - 2 * HEADERS_BYTES);
    volume(&made, &device).write_at(0, &data).unwrap();
    (device, data)
}

/// A device of `size` bytes that begins like `device`.
pub(super) fn enlarged(device: &RamDevice, size: u64) -> RamDevice {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    let larger = RamDevice::new(size);
    larger.write_at(0, &bytes).unwrap();
    larger
}
