//! Hidden volumes of TrueCrypt and VeraCrypt made.

use super::create::CreateOptions;
use super::disk::Disk;
use super::losses;
use super::open::Search;
use crate::cli::{Failure, print_done};
use block::ByteRange;
use cipher::Key;
use volume::judge::Use;
use volume::tcrypt::{Family, Keyfiles, Opening, Place, Sealing, Unlocked};
use volume::{Limits, Secret, operate};

/// Makes a hidden volume at the end of the normal one.
pub fn hidden(options: &CreateOptions, family: Family, size: u64) -> Result<(), Failure> {
    let creation = options.tcrypt(family)?;
    let sealing = &creation.sealing;
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
    operate::check_pim(family, sealing, &passphrase, losses::accepted(options.yes))
        .map_err(|error| losses::at(&options.image, error))?;
    if outer_opens_with(&outer_opening, sealing, &secret, &passphrase) {
        return Err(operate::hides().into());
    }
    let limits = Limits::default();
    if !options.yes {
        return Err(would_be_lost(options, &outer, &device, size)?);
    }
    if let Some(at) = outer.behind(&device, Place::Hidden)? {
        return Err(Failure::new(
            4,
            format!(
                "{} holds {}",
                options.image.display(),
                operate::strange_at(at)
            ),
            "Nothing was changed. If you don't need them, let the volume take them first: `volume resize --yes`.",
        ));
    }
    let unlocked = creation.create_hidden(&device, &outer, size, &passphrase, &limits)?;
    let data = unlocked.mapping(&device)?.data;
    describe(&unlocked, data)
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
