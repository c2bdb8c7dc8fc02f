//! TrueCrypt and VeraCrypt volumes made, normal and hidden.

use super::arguments::{keyfiles, prf};
use super::create::{CreateOptions, fill, place};
use super::disk::Disk;
use super::open::Search;
use crate::cli::{Failure, print};
use block::ByteRange;
use cipher::Key;
use volume::tcrypt::{Creation, Family, Keyfiles, Opening, Prf, Sealing, Unlocked};
use volume::{Hash, Limits, Secret};

/// Makes a volume of all of the file or device.
pub fn normal(options: &CreateOptions, family: Family) -> Result<(), Failure> {
    let sealing = Sealing {
        prf: prf(family, options.hash.as_deref())?.unwrap_or(Prf::Pbkdf2(Hash::Sha512)),
        pim: options.veracrypt_pim,
        keyfiles: keyfiles(&options.keyfiles)?,
    };
    let (device, mut made) = place(&options.image, options.size, options.yes)?;
    let passphrase = passphrase(options, &sealing.keyfiles)?;
    let creation = Creation {
        family,
        algorithms: options.cipher.algorithms().to_vec(),
        sealing,
    };
    let unlocked = creation.create(&device, &passphrase, &Limits::default())?;
    let data = unlocked.mapping(&device)?.data;
    if !options.quick {
        // What is not used yet must look like what is.
        fill(&device, data, options.no_progress)?;
    }
    if let Some(made) = &mut made {
        made.keep();
    }
    describe(&unlocked, data)
}

/// Makes a hidden volume at the end of the normal one.
pub fn hidden(options: &CreateOptions, family: Family, size: u64) -> Result<(), Failure> {
    let sealing = Sealing {
        prf: prf(family, options.hash.as_deref())?.unwrap_or(Prf::Pbkdf2(Hash::Sha512)),
        pim: options.veracrypt_pim,
        keyfiles: keyfiles(&options.keyfiles)?,
    };
    let device = Disk::open(&options.image, true)?;
    let secret = options.secret.secret(family.format(), &options.image)?;
    let search = Search::start()?;
    let outer = Opening {
        pim: options.outer_pim,
        keyfiles: keyfiles(&options.outer_keyfiles)?,
        ..Opening::new(family)
    };
    let watch = |progress| search.watch(progress);
    let outer = outer.unlock(&device, &secret, &Limits::default(), &watch)?;
    drop(search);
    let passphrase = options.new.secret(&options.image)?;
    let creation = Creation {
        family,
        algorithms: options.cipher.algorithms().to_vec(),
        sealing,
    };
    let limits = Limits::default();
    let unlocked = creation.create_hidden(&device, &outer, size, &passphrase, &limits)?;
    let data = unlocked.mapping(&device)?.data;
    describe(&unlocked, data)
}

/// With key files, the passphrase may be empty, and is not asked for.
fn passphrase(options: &CreateOptions, keyfiles: &Keyfiles) -> Result<Key, Failure> {
    match keyfiles.count() > 0 && !options.secret.is_given() {
        true => Ok(Key::from_slice(&[])),
        false => options.secret.first_secret(&options.image),
    }
}

fn describe(unlocked: &Unlocked, data: ByteRange) -> Result<(), Failure> {
    print(&format!(
        "{} volume: {}, {}, {} bytes of data from {}\n",
        unlocked.header.family.format(),
        unlocked.spec,
        unlocked.prf,
        data.length,
        data.offset
    ))
}

/// What opens a volume, and what it shall open with from then on: the same
/// derivation, PIM and key files.
pub fn resealed(opening: &Opening, unlocked: &Unlocked) -> Sealing {
    Sealing {
        prf: unlocked.prf,
        pim: opening.pim,
        keyfiles: opening.keyfiles.clone(),
    }
}

/// The bytes of a passphrase.
pub fn passphrase_of(secret: &Secret) -> Result<&Key, Failure> {
    match secret {
        Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => Ok(bytes),
        Secret::VolumeKey(_) => Err(Failure::new(
            2,
            "a volume key opens no header",
            "Give the passphrase.",
        )),
    }
}
