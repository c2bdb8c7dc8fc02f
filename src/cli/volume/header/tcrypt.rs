//! Headers of TrueCrypt and VeraCrypt, which only their passphrase tells from noise.

use super::{RepairOptions, RestoreOptions};
use crate::cli::volume::disk::Disk;
use crate::cli::volume::open::Search;
use crate::cli::{Failure, print, print_done};
use block::BlockDevice;
use std::path::Path;
use volume::judge::Use;
use volume::tcrypt::{Family, Opening, Place, Unlocked, stranger_at_start};
use volume::{Limits, Secret, VolumeError};

/// Writes headers anew from the one in a backup, which the passphrase of then opens.
pub fn restore(options: &RestoreOptions, family: Family) -> Result<(), Failure> {
    options.volume.refuse_foreign_options(family.format())?;
    options.volume.check_distinct("--input", &options.input)?;
    let saved = Disk::open(&options.input, Use::Read)?;
    let devices = options.volume.devices(Use::MendHeader)?;
    let opening = options.volume.tcrypt(family)?;
    let secret = options.secret.secret(family.format(), &options.input)?;
    let places = [Some(opening.place), opening.place.copy()];
    let places: Vec<Place> = places.into_iter().flatten().collect();
    let unlocked = first(&opening, &places, &saved, &secret)?;
    let lost = lost(&opening, &places, &unlocked, devices.data(), &secret)?;
    if let (Some(lost), false) = (&lost, options.yes) {
        return Err(Failure::new(
            4,
            format!("{} would lose {lost}", options.volume.image().display()),
            "Nothing was changed. Give --yes if the backup belongs there all the same.",
        ));
    }
    let sealing = unlocked.sealing(&opening);
    let limits = Limits::default();
    unlocked.write_headers(
        devices.data(),
        &sealing,
        secret.words(family.format())?,
        &limits,
    )?;
    print_done("the header and its copy are rewritten from the backup\n");
    Ok(())
}

/// The losses, in words, if the header of a backup takes the place of the bytes on `device`.
fn lost(
    opening: &Opening,
    places: &[Place],
    saved: &Unlocked,
    device: &Disk,
    secret: &Secret,
) -> Result<Option<String>, Failure> {
    match first(&known(opening, saved), places, device, secret) {
        Ok(there) if there.is_of_same_data(saved) => {
            if places[0] != Place::System
                && let Some(name) = stranger_at_start(device)?
            {
                return Ok(Some(format!(
                    "{name}, which it holds in place of that header"
                )));
            }
            let place = places[0];
            let behind = there.behind(device, place)?;
            let strange = |_: &u64| !opens_copy(opening, saved, place, device, secret);
            Ok(behind.filter(strange).map(strange_at))
        }
        Ok(there) if there.has_same_keys(saved) => {
            let place = |unlocked: &Unlocked| -> Result<String, Failure> {
                let data = unlocked.mapping(device)?.data;
                Ok(format!("{} bytes from byte {}", data.length, data.offset))
            };
            Ok(Some(format!(
                "the place of its data: {}, and in the backup {}",
                place(&there)?,
                place(saved)?
            )))
        }
        Ok(_) => Ok(Some(
            "the keys of its data, which are not the backup's: they could never be read again"
                .to_owned(),
        )),
        Err(_) => Ok(Some(match saved.stranger(device, true)? {
            Some(name) => format!("{name}, which it holds in place of that header"),
            None => "what it holds: no header there opens with what opens the backup, and that of \
                     another volume or another passphrase looks like noise"
                .to_owned(),
        })),
    }
}

/// Writes the header anew from its copy, or the copy from the header: whichever
/// opens.
pub fn repair(options: &RepairOptions, family: Family) -> Result<(), Failure> {
    let image = options.volume.image();
    options.volume.refuse_foreign_options(family.format())?;
    let devices = options.volume.devices(Use::MendHeader)?;
    let device = devices.data();
    let opening = options.volume.tcrypt(family)?;
    let secret = options.secret.secret(family.format(), image)?;
    let places = match opening.place {
        Place::Normal => vec![
            Place::Normal,
            Place::NormalBackup,
            Place::Hidden,
            Place::HiddenBackup,
        ],
        Place::Hidden => vec![Place::Hidden, Place::HiddenBackup],
        place => vec![place],
    };
    let unlocked = first(&opening, &places, device, &secret)?;
    let (other, made) = match unlocked.place {
        Place::Normal => (Place::NormalBackup, "the copy is rewritten from the header"),
        Place::Hidden => (
            Place::HiddenBackup,
            "the hidden volume's copy is rewritten from its header",
        ),
        Place::NormalBackup => (Place::Normal, "the header is rewritten from its copy"),
        Place::HiddenBackup => (
            Place::Hidden,
            "the hidden volume's header is rewritten from its copy",
        ),
        Place::System => (Place::System, ""),
    };
    let refuse = |what: String| match options.yes {
        true => Ok(()),
        false => Err(Failure::new(
            4,
            format!("{} {what}", image.display()),
            "Nothing was changed. Give --yes if that may be overwritten.",
        )),
    };
    match first(&known(&opening, &unlocked), &[other], device, &secret) {
        Ok(there) if there.place == other && there.is_of_same_data(&unlocked) => {
            return print("the header and its copy are good\n");
        }
        Ok(there) if there.place == other => {
            refuse("has a header and a copy of it that open but describe different data".into())?;
        }
        _ => {
            if let Some(name) = unlocked.stranger(device, false)? {
                refuse(format!("holds {name} where the header belongs"))?;
            }
            if unlocked.place.copy().is_some()
                && let Some(at) = unlocked.behind(device, unlocked.place)?
            {
                refuse(format!("holds {}", strange_at(at)))?;
            }
        }
    }
    let sealing = unlocked.sealing(&opening);
    unlocked.restore(
        device,
        &sealing,
        secret.words(family.format())?,
        &Limits::default(),
    )?;
    print_done(&format!("{made}\n"));
    Ok(())
}

/// Refuses to write the copy of the header that was opened over what is behind the volume,
/// unless that is such a copy.
///
/// # Errors
/// Exit code 4, and those of reading.
pub fn check_behind(
    image: &Path,
    opening: &Opening,
    unlocked: &Unlocked,
    device: &Disk,
    secret: &Secret,
) -> Result<(), Failure> {
    let place = unlocked.place;
    let behind = match place.copy() {
        Some(_) => unlocked.behind(device, place)?,
        None => None,
    };
    match behind {
        Some(at) if !opens_copy(opening, unlocked, place, device, secret) => Err(Failure::new(
            4,
            format!("{} holds {}", image.display(), strange_at(at)),
            "Nothing was changed. If you don't need them, `volume header repair --yes` writes the copy there.",
        )),
        _ => Ok(()),
    }
}

/// A description of unknown data at byte `at`, which no header of the volume mentions.
pub fn strange_at(at: u64) -> String {
    format!("data behind the volume, at byte {at}, where the copy of its header belongs")
}

/// Whether the secret that opens a header at `place` opens its copy, too.
fn opens_copy(
    opening: &Opening,
    unlocked: &Unlocked,
    place: Place,
    device: &Disk,
    secret: &Secret,
) -> bool {
    let known = known(opening, unlocked);
    let copy = place.copy();
    copy.is_some_and(|copy| first(&known, &[copy], device, secret).is_ok())
}

/// The header that opens, of those at `places`.
fn first(
    opening: &Opening,
    places: &[Place],
    device: &dyn BlockDevice,
    secret: &Secret,
) -> Result<Unlocked, Failure> {
    let search = Search::start()?;
    let watch = |progress| search.watch(progress);
    let mut refused = None;
    for &place in places {
        let opening = Opening {
            place,
            ..opening.clone()
        };
        match opening.unlock(device, secret, &Limits::default(), &watch) {
            Ok(unlocked) => return Ok(unlocked),
            // Another place may have one.
            Err(
                error @ (VolumeError::NoHeaderFits
                | VolumeError::Header { .. }
                | VolumeError::Block(block::BlockError::Io { .. })),
            ) => refused = refused.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused.expect("there is a place at least").into())
}

/// With the derivation and the cipher that another header of the volume has.
fn known(opening: &Opening, unlocked: &Unlocked) -> Opening {
    Opening {
        prf: Some(unlocked.prf),
        algorithms: Some(unlocked.spec.algorithms().to_vec()),
        ..opening.clone()
    }
}
