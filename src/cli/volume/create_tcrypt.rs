//! TrueCrypt and VeraCrypt volumes made, normal and hidden.

use super::create::{CreateOptions, Ground, fill};
use super::disk::Disk;
use super::header::strange_at;
use super::losses;
use super::open::Search;
use super::resize::check_whole;
use super::secrets::Empty;
use crate::cli::{Failure, print_done};
use block::{BlockDevice, ByteRange};
use cipher::Key;
use volume::judge::Use;
use volume::tcrypt::{
    Creation, Family, HEADERS_BYTES, Keyfiles, Opening, Place, Prf, Sealing, Unlocked,
};
use volume::{Draft, Hash, Limits, Secret, VolumeError};

/// Makes a volume of all of the file or device.
pub fn normal(options: &CreateOptions, family: Family) -> Result<(), Failure> {
    let sealing = Sealing {
        prf: named_prf(family, options)?.unwrap_or(Prf::Pbkdf2(Hash::Sha512)),
        pim: options.veracrypt_pim,
        keyfiles: Keyfiles::read(&options.keyfiles)?,
    };
    if let Some(size) = options.size {
        check_whole(size.bytes)?;
    }
    let ground = Ground::take(&options.image, options.size, options.yes)?;
    let device = &ground.device;
    let passphrase = passphrase(options, &sealing.keyfiles)?;
    check_pim(family, &sealing, &passphrase, options.yes)?;
    let creation = Creation {
        family,
        algorithms: options.cipher.plain()?.algorithms().to_vec(),
        sealing,
    };
    // An impossible request fails here, while the old volume is still there.
    let draft = Draft::new(device);
    let unlocked = creation.create(&draft, &passphrase, &Limits::default())?;
    ground.begin()?;
    let size = device.geometry().size;
    for at in [0, size.saturating_sub(HEADERS_BYTES)] {
        let range = match options.quick {
            true => ByteRange::new(at, HEADERS_BYTES.min(size)),
            false => ByteRange::new(0, size),
        };
        device.reserve(range)?;
    }
    let data = unlocked.mapping(device)?.data;
    let write = || -> Result<(), Failure> {
        if options.yes {
            losses::shred_header(device)?;
        }
        draft.write()?;
        match options.quick {
            true => Ok(()),
            // Unused space must look like used space.
            false => fill(device, data, options.no_progress),
        }
    };
    write().map_err(|error| ground.overwritten(error))?;
    ground.keep()?;
    describe(&unlocked, data)
}

/// Refuses to write a volume anew whose header could not be used, so that its copy opened it:
/// that is the only one left.
///
/// # Errors
/// Exit code 2.
pub fn refuse_copy(opening: &Opening, unlocked: &Unlocked) -> Result<(), Failure> {
    match unlocked.place == opening.place {
        true => Ok(()),
        false => Err(Failure::new(
            2,
            "the header is damaged or cannot be read, and only its copy opens the volume",
            "Repair the header first: `cryptmark volume header repair`. Nothing was changed.",
        )),
    }
}

/// Makes a hidden volume at the end of the normal one.
pub fn hidden(options: &CreateOptions, family: Family, size: u64) -> Result<(), Failure> {
    let sealing = Sealing {
        prf: named_prf(family, options)?.unwrap_or(Prf::Pbkdf2(Hash::Sha512)),
        pim: options.veracrypt_pim,
        keyfiles: Keyfiles::read(&options.keyfiles)?,
    };
    let device = Disk::open(&options.image, Use::WriteData)?;
    let secret = options.secret.secret(family.format(), &options.image)?;
    let search = Search::start()?;
    let outer_opening = Opening {
        pim: options.outer_pim,
        keyfiles: Keyfiles::read(&options.outer_keyfiles)?,
        ..Opening::new(family)
    };
    let watch = |progress| search.watch(progress);
    let outer = outer_opening.unlock(&device, &secret, &Limits::default(), &watch)?;
    drop(search);
    let beside = sealing.keyfiles.count() > 0;
    let passphrase = options.new.secret_beside(&options.image, beside)?;
    check_pim(family, &sealing, &passphrase, options.yes)?;
    if outer_opens_with(&outer_opening, &sealing, &secret, &passphrase) {
        return Err(hides());
    }
    let limits = Limits::default();
    if !options.yes {
        return Err(would_be_lost(options, &outer, &device, size)?);
    }
    if let Some(at) = outer.behind(&device, Place::Hidden)? {
        return Err(Failure::new(
            4,
            format!("{} holds {}", options.image.display(), strange_at(at)),
            "Nothing was changed. If you don't need them, let the volume take them first: `volume resize --yes`.",
        ));
    }
    let creation = Creation {
        family,
        algorithms: options.cipher.plain()?.algorithms().to_vec(),
        sealing,
    };
    let unlocked = creation.create_hidden(&device, &outer, size, &passphrase, &limits)?;
    let data = unlocked.mapping(&device)?.data;
    describe(&unlocked, data)
}

/// Outer and hidden volume would open with the same.
pub fn hides() -> Failure {
    Failure::new(
        2,
        "the hidden volume would open with the same passphrase as the outer one, so it could not be reached",
        "Give the hidden volume a passphrase of its own.",
    )
}

/// Whether a header for the hidden volume would open with the outer volume's secret:
/// programs try the outer header first.
fn outer_opens_with(outer: &Opening, hidden: &Sealing, secret: &Secret, new: &Key) -> bool {
    let new = Secret::Passphrase(Key::from_slice(new.as_bytes()));
    let beside = Opening {
        keyfiles: hidden.keyfiles.clone(),
        ..Opening::new(outer.family)
    };
    let same_pim = outer.pim.unwrap_or(0) == hidden.pim.unwrap_or(0);
    match (outer.password(secret), beside.password(&new)) {
        (Ok(outer), Ok(hidden)) => same_pim && outer.as_bytes() == hidden.as_bytes(),
        _ => false,
    }
}

/// The refusal that asks for confirmation. It is needed every time, because a hidden volume cannot
/// be seen without its passphrase. The outer volume's data in the place of the new hidden volume
/// would be lost as well.
fn would_be_lost(
    options: &CreateOptions,
    outer: &Unlocked,
    device: &Disk,
    size: u64,
) -> Result<Failure, Failure> {
    let data = outer.mapping(device)?.data;
    Ok(Failure::new(
        4,
        format!(
            "{} may have a hidden volume already, which would be destroyed; the outer volume's data \
             in its last {size} bytes of {} would be overwritten",
            options.image.display(),
            data.length
        ),
        "A hidden volume cannot be seen without its passphrase. If there is none, and the outer file \
         system leaves its end free, confirm with --yes.",
    ))
}

/// VeraCrypt's rule: fewer iterations than usual only with a long passphrase.
fn check_pim(
    family: Family,
    sealing: &Sealing,
    passphrase: &Key,
    yes: bool,
) -> Result<(), Failure> {
    if !is_cheap(family, sealing, passphrase) || yes {
        return Ok(());
    }
    Err(Failure::new(
        4,
        format!(
            "a PIM below {USUAL_PIM} makes passphrases cheap to guess, and this one has fewer than \
             {LONG_PASSPHRASE} bytes"
        ),
        "Take a longer passphrase or a larger PIM, or give --yes if that is what you want.",
    ))
}

/// The same of a volume that has its PIM already.
pub fn warn_of_pim(family: Family, sealing: &Sealing, passphrase: &Key) {
    if is_cheap(family, sealing, passphrase) {
        eprintln!(
            "warning: with a PIM below {USUAL_PIM}, passphrases of fewer than {LONG_PASSPHRASE} bytes \
             are cheap to guess"
        );
    }
}

fn is_cheap(family: Family, sealing: &Sealing, passphrase: &Key) -> bool {
    let few = matches!(sealing.pim, Some(1..USUAL_PIM));
    family == Family::VeraCrypt && few && passphrase.len() < LONG_PASSPHRASE
}

/// The PIM that stands for VeraCrypt's usual iterations, and the length of a
/// passphrase from which on it takes smaller ones.
const USUAL_PIM: u32 = 485;
const LONG_PASSPHRASE: usize = 20;

/// The key derivation that `--hash` names.
fn named_prf(family: Family, options: &CreateOptions) -> Result<Option<Prf>, VolumeError> {
    let named = options.hash.as_deref().map(|name| Prf::of(family, name));
    named.transpose()
}

/// With key files, the passphrase may be empty, and is not asked for.
fn passphrase(options: &CreateOptions, keyfiles: &Keyfiles) -> Result<Key, Failure> {
    match keyfiles.count() > 0 && !options.secret.is_given() {
        true => Ok(Key::from_slice(&[])),
        false => {
            let given = keyfiles.count() > 0 || options.new.empty() == Empty::Allowed;
            options
                .secret
                .first_secret(&options.image, Empty::if_allowed(given))
        }
    }
}

fn describe(unlocked: &Unlocked, data: ByteRange) -> Result<(), Failure> {
    print_done(&format!(
        "{} volume: {}, {}, {} bytes of data from {}\n",
        unlocked.header.family.format(),
        unlocked.spec,
        unlocked.prf,
        data.length,
        data.offset
    ));
    Ok(())
}

/// The derivation, PIM and key files of an opened volume. With them its new header opens in the
/// same way.
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
            "a volume key cannot open a header",
            "Give the passphrase.",
        )),
    }
}
