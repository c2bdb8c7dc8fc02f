//! Another cipher or key for the data where they are; and data encrypted where they are, or
//! decrypted.

mod caller;
mod chosen;
mod in_place;
mod journal;
mod tcrypt;

pub use caller::{Answers, Caller};
pub use chosen::{left, opened};
pub use in_place::{check_in_place, is_beside};

use super::{Options, impossible};
use crate::error::standing;
use crate::judge::Use;
use crate::luks2::{Header, Keys};
use crate::place::{Place, Site};
use crate::{Format, Parameters, Verdict, VolumeError, Warning, volume};
use block::plain::word;
use block::{BlockDevice, folder_of, hold};
use chosen::{Chosen, check_apart};
use cipher::{CipherSpec, Key, SectorSize};
use in_place::Settled;
use std::path::Path;

/// What is done to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They get another key, and the cipher and sizes of the options.
    Anew,
    /// They are not encrypted, and are going to be.
    Encrypt,
    /// They are decrypted for good.
    Decrypt,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reencrypted {
    /// All is done.
    Done,
    /// A header that an interrupted run had taken away is back in its place; nothing had begun.
    PutBack,
}

/// Gives the data of a LUKS2, TrueCrypt or VeraCrypt volume another key, and the cipher, key size,
/// sector size and hash of the options; or encrypts data in place as LUKS2, or decrypts it. A change
/// that was stopped is continued, whatever was asked for then.
///
/// The volume opens at any time, also after the program was killed. Do the same again to continue.
/// While the header is in another file, it opens with that: the one that `site` names, or
/// `IMAGE.cryptmark-header` beside the volume.
///
/// # Errors
/// [`VolumeError::Judged`] for what would be lost or weak; [`VolumeError::Impossible`] and
/// [`VolumeError::Standing`] for what is not possible, or not now; those of unlocking and of the
/// caller. Nothing was changed then. [`VolumeError::Partly`] with [`VolumeError::Stopped`] if the
/// caller asks for it, and with those of reading and writing.
pub fn reencrypt(
    site: &Site<'_>,
    change: Change,
    options: &Options,
    caller: &dyn Caller,
) -> Result<Reencrypted, VolumeError> {
    check_format(change, options)?;
    site.check_names()?;
    let image = site.image();
    if let Some(header) = site.named_header().filter(|path| is_at(path, &site.side())) {
        return Err(impossible(
            format!("{} is a name that is used here itself", header.display()),
            "Give the file with the header another name, or name none.",
        ));
    }
    // Checked first, so that nobody types a passphrase in vain.
    site.check_free(match change {
        Change::Encrypt => Use::Encrypt,
        _ => Use::Reencrypt,
    })?;
    if site.named_header().is_some()
        && in_place::header_beside(site)?.is_some_and(|beside| beside.is_reencrypting())
    {
        return Err(standing(
            format!(
                "{} is the header of an unfinished reencryption of {}",
                site.side().display(),
                image.display()
            ),
            "Finish that first, without a header of another name.",
        ));
    }
    if in_place::is_beside(site)? {
        match (in_place::settle(site)?, change) {
            (Settled::Begun, _)
            | (Settled::Decrypted, Change::Encrypt)
            | (Settled::PutBack, Change::Decrypt) => {}
            (Settled::Apart, _) => {
                return in_place::bring_in(site, options, caller).map(|()| Reencrypted::Done);
            }
            (Settled::Decrypted, _) => return Ok(Reencrypted::Done),
            (Settled::PutBack, _) => return Ok(Reencrypted::PutBack),
        }
    }
    let family = options.family();
    if family.is_none() && in_place::end_move(site)? && change != Change::Decrypt {
        return Ok(Reencrypted::Done);
    }
    let journal = site.apart().filter(|path| path.exists());
    if let Some(path) = &journal {
        // A run that was killed may have left its name in a cache, and nowhere else.
        journal::sync_name(path)?;
    }
    let begun = match &journal {
        Some(path) => is_begun(&*site.open_at(path, Use::Read)?)?,
        // Their headers say nothing of it, and need not be readable.
        None => family.is_none() && is_begun(&*site.open(Use::Read)?)?,
    };
    let makes_journal = match change {
        Change::Anew => family.is_some(),
        Change::Encrypt | Change::Decrypt => true,
    };
    if makes_journal && !begun && journal.is_none() {
        let path = site.apart().unwrap_or_else(|| site.side());
        if let Some(warning) = block::warn_of_memory(&path, image) {
            caller.warn(&warning);
        }
    }
    match (change, begun, &journal, family) {
        (Change::Encrypt, false, ..) => in_place::encrypt(site, options, caller),
        (Change::Decrypt, false, None, _) => in_place::decrypt(site, options, caller),
        (Change::Anew | Change::Encrypt, _, None, Some(family)) => {
            tcrypt::begin(site, family, options, caller)
        }
        _ => of_header(site, change, options, caller, journal.as_deref()),
    }
    .map(|()| Reencrypted::Done)
}

/// The same of a volume that has a header. `journal` is where that is, if not with the data.
fn of_header(
    site: &Site<'_>,
    change: Change,
    options: &Options,
    caller: &dyn Caller,
    journal: Option<&Path>,
) -> Result<(), VolumeError> {
    let image = site.image();
    let place = site.place(Use::Reencrypt)?;
    // A TrueCrypt or VeraCrypt volume has a header of LUKS2 meanwhile.
    let format = match (options.family(), options.format) {
        (Some(_), _) => Format::Luks2,
        (None, Some(format)) => format,
        (None, None) => volume::detect(place.header())?,
    };
    match format {
        Format::Luks2 => {}
        Format::Luks1 => {
            return Err(no_journal(journal.unwrap_or(image)));
        }
        format => {
            return Err(impossible(
                format!("a {} volume cannot be reencrypted in place", format.title()),
                "Make a LUKS2 volume, and copy the data into it.",
            ));
        }
    }
    let mut header = Header::read(place.header())?;
    let chooses = options.parameters.hash.is_some() || caller.chooses_cost();
    let warn_of_slots = || {
        if chooses || caller.others() > 0 {
            caller.warn(
                "the key slots are those with which this began: options for them have no effect \
                 now",
            );
        }
    };
    if let (true, Some(path)) = (header.is_for_another(), journal) {
        check_mode(change, &header)?;
        tcrypt::check_choice(options, &header)?;
        warn_of_slots();
        return tcrypt::go_on(site, &mut header, (&place, path), options, caller);
    }
    if let Some(named) = site.named_header() {
        if header.length_afterwards().is_some() {
            return Err(standing(
                format!(
                    "{} is a header that belongs before the data of {}",
                    named.display(),
                    image.display()
                ),
                format!(
                    "Rename it to {}, and name no header.",
                    site.side().display()
                ),
            ));
        }
        if !header.is_decrypted() && check_apart(&header, place.data(), &options.accepted)? {
            caller.warn(&Warning::Overtaken.to_string());
        }
    }
    if header.is_reencrypting() {
        check_mode(change, &header)?;
        check_choice(&options.parameters, &header)?;
        warn_of_slots();
        let secret = caller.secret(format)?;
        let keys = header.unlock_both(place.header(), &secret, &options.limits)?;
        let length = header.length_afterwards();
        let end = header.end_of_encryption(place.data())?;
        let devices = (place.header(), place.data());
        work(site, &mut header, devices, &keys, (journal, caller))?;
        let now = place.data().length()?;
        drop(place);
        in_place::finish(site, &header, length)?;
        return match end {
            Some(end) if now > end => Err(in_place::longer(site, end)),
            _ => Ok(()),
        };
    }
    if header.is_decrypted() {
        return match header.has_decrypted(place.data())? {
            Some(true) if change == Change::Decrypt => Ok(()),
            Some(false) => Err(VolumeError::OtherData),
            _ => Err(standing(
                "the header says that all data are decrypted, and nothing is left to do",
                "To encrypt them again, encrypt them with another file for the header.",
            )),
        };
    }
    let keys = match change {
        Change::Decrypt => {
            let secret = caller.secret(format)?;
            let slot = options.parameters.key_slot;
            let unlocked = header.unlock(place.header(), &secret, slot, &options.limits)?;
            let keys = Keys {
                old: unlocked.key,
                new: Key::from_slice(&[]),
            };
            let (device, data) = (place.header(), place.data());
            header.check_unbound(&options.accepted)?;
            caller.begin()?;
            header.begin_decryption(device, data, &keys, false, &options.accepted)?;
            keys
        }
        Change::Anew | Change::Encrypt => anew(&mut header, &place, options, caller)?,
    };
    let devices = (place.header(), place.data());
    work(site, &mut header, devices, &keys, (journal, caller))
}

/// Begins with another cipher, sector size or key. Returns both keys.
fn anew(
    header: &mut Header,
    place: &Place,
    options: &Options,
    caller: &dyn Caller,
) -> Result<Keys, VolumeError> {
    let chosen = Chosen::of(header, place.data(), options, caller)?;
    for warning in &chosen.warnings {
        caller.warn(warning);
    }
    let secret = caller.secret(Format::Luks2)?;
    let slot = options.parameters.key_slot;
    let unlocked = header.unlock(place.header(), &secret, slot, &options.limits)?;
    let first = chosen::first_kept(&secret, unlocked.slot)?;
    let kept = caller.kept(header, place.header(), first)?;
    chosen.begin(header, place, (unlocked.key, &kept), options, caller)
}

/// Goes through all data, from the start or from where it was stopped. `journal` is the file that
/// has the header meanwhile.
fn work(
    site: &Site<'_>,
    header: &mut Header,
    (device, data): (&dyn BlockDevice, &dyn BlockDevice),
    keys: &Keys,
    (journal, caller): (Option<&Path>, &dyn Caller),
) -> Result<(), VolumeError> {
    #[cfg(target_os = "linux")]
    let _lock = lock(header)?;
    caller.begin()?;
    let total = data.geometry().size;
    let done = header.reencrypt(device, data, keys, &|done| caller.report(done, total));
    done.map_err(|error| match error.verdict() {
        Verdict::Failed | Verdict::Interrupted => VolumeError::Partly {
            error: Box::new(error),
            image: site.image().to_owned(),
            // One that the data begin with goes where they go.
            keys: journal
                .filter(|path| !hold::is_same(path, site.image()))
                .map(Path::to_owned),
        },
        // It was refused before it went on.
        _ => error,
    })
}

/// Refuses a type that is not encrypted in place, or decrypted.
fn check_format(change: Change, options: &Options) -> Result<(), VolumeError> {
    let verb = match change {
        Change::Anew => return Ok(()),
        Change::Encrypt => "encrypted",
        Change::Decrypt => "decrypted",
    };
    match options.format {
        None | Some(Format::Luks2) => Ok(()),
        Some(other) => Err(impossible(
            format!("a {} volume cannot be {verb} in place", other.title()),
            "Only LUKS2 is possible here. For another type, copy the data.",
        )),
    }
}

/// Refuses to go on with something else than what was asked for.
fn check_mode(change: Change, header: &Header) -> Result<(), VolumeError> {
    let asked = match change {
        Change::Anew => return Ok(()),
        Change::Encrypt => "encrypt",
        Change::Decrypt => "decrypt",
    };
    match header.reencryption_mode() {
        Some(mode) if mode != asked => Err(standing(
            format!("the volume is in the middle of another change: `{mode}`"),
            "Finish that first: reencrypt it, and say neither encrypt nor decrypt.",
        )),
        _ => Ok(()),
    }
}

/// Refuses to go on with another cipher or sector size than it began with.
fn check_choice(said: &Parameters, header: &Header) -> Result<(), VolumeError> {
    let Some((encryption, sector_size)) = header.becomes() else {
        return Ok(());
    };
    let began: CipherSpec = encryption.parse()?;
    let is_other = said.cipher()?.is_some_and(|spec| spec != began)
        || said.sector_size()?.is_some_and(|size| size != sector_size);
    match is_other {
        true => Err(begun_with(encryption, sector_size)),
        false => Ok(()),
    }
}

/// The refusal to go on with something else.
fn begun_with(encryption: &str, sector_size: SectorSize) -> VolumeError {
    standing(
        format!(
            "the change was begun with {encryption} and sectors of {} bytes, and cannot become \
             another one",
            sector_size.bytes()
        ),
        "Finish it first, without another cipher or sector size. Then begin the other one.",
    )
}

/// The error of a LUKS1 header in the file `header`.
fn no_journal(header: &Path) -> VolumeError {
    impossible(
        "a LUKS1 volume cannot be reencrypted in place: its header has no room for a journal",
        format!(
            "Make it a LUKS2 volume first: `cryptmark volume convert {} --type luks2`",
            word(header)
        ),
    )
}

/// Whether a file that need not be there has this name, however that is spelled.
fn is_at(path: &Path, name: &Path) -> bool {
    let folder = folder_of(path).canonicalize();
    folder.is_ok_and(|folder| folder.join(path.file_name().unwrap_or_default()) == name)
}

/// Whether there is a header that tells of a reencryption.
fn is_begun(device: &dyn BlockDevice) -> Result<bool, VolumeError> {
    match Header::read(device) {
        Ok(header) => Ok(header.is_reencrypting()),
        Err(VolumeError::NotThis { .. } | VolumeError::Header { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lock under which cryptsetup reencrypts the volume. If its folder cannot be
/// used, the reencryption goes on without the lock, as cryptsetup's does.
#[cfg(target_os = "linux")]
fn lock(header: &Header) -> Result<Option<block::hold::MetadataLock>, VolumeError> {
    let Some(name) = header.reencryption_lock() else {
        return Ok(None);
    };
    match block::hold::lock_resource(&name) {
        Ok(lock) => Ok(Some(lock)),
        Err(block::BlockError::Examine { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Some program has made something else of the volume than encrypted data.
pub(super) fn several_segments() -> VolumeError {
    impossible(
        "the volume does not have exactly one segment of encrypted data",
        "Continue with the program that made it so.",
    )
}
