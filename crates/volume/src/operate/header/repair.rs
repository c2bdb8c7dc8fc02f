//! A header from its other copy, or from what is left of both.

use super::super::tcrypt::{first, known, strange_at};
use super::super::{Options, Report};
use super::{Mended, check_replaced, is_stop};
use crate::judge::{self, State, Use};
use crate::luks2::{Certainty, Header, Rebuilt, Recovered};
use crate::place::Place;
use crate::tcrypt::{Family, Place as At};
use crate::{Format, Secret, VolumeError, luks1};
use block::BlockDevice;

/// Mends a header from its other copy, or from the remains of both.
///
/// `place` is open for [`Use::MendHeader`]. For LUKS, a `secret` that opens the volume proves that a
/// rebuilt header is right; TrueCrypt and VeraCrypt need it. `uuid` is for a header that has lost
/// its own.
///
/// # Errors
/// [`VolumeError::Judged`] if something else would be overwritten, or nothing proves that a header is
/// right, and that is not accepted; those of reading, unlocking and writing.
pub fn repair_header(
    place: &Place,
    secret: Option<&Secret>,
    uuid: Option<&str>,
    options: &Options,
    report: Report<'_>,
) -> Result<Mended, VolumeError> {
    if let Some(family) = options.family() {
        let format = family.format();
        let secret = secret.ok_or(VolumeError::NoSecret { format })?;
        return tcrypt(place, (family, secret), options, report);
    }
    let repair = Repair {
        options,
        device: place.header(),
        uuid,
        secret,
    };
    let is_luks1 = Format::detect(repair.device)? == Some(Format::Luks1);
    place.at_header(match (is_luks1, Header::read(repair.device)) {
        (true, _) => repair.luks1(),
        (false, Ok(header)) => repair.mend(header),
        (false, Err(error)) => repair.rebuild(error),
    })
}

struct Repair<'a> {
    options: &'a Options,
    device: &'a dyn BlockDevice,
    uuid: Option<&'a str>,
    /// The secret that opens the volume, if the user gives it as a proof.
    secret: Option<&'a Secret>,
}

impl Repair<'_> {
    /// LUKS1 has nothing to mend its header from.
    fn luks1(&self) -> Result<Mended, VolumeError> {
        let header = luks1::Header::read(self.device)?;
        // A table that a tool has written over it says whose the disk is now.
        judge::check_device(Use::MendHeader, self.device, &self.options.accepted)?;
        let lost = header.lost_keyslots(self.device)?;
        let text = "the header is good; LUKS1 has one only, and no copy of it\n".to_owned();
        Ok(mended(text + &told(&lost), false))
    }

    /// One copy is good.
    fn mend(&self, mut header: Header) -> Result<Mended, VolumeError> {
        if header.recovered != Recovered::Both {
            let accepted = &self.options.accepted;
            judge::check_device(Use::MendHeader, self.device, accepted)?;
            judge::check_first_header(Use::MendHeader, self.device, accepted)?;
        }
        if let Some(other) = header.other_copy(self.device)? {
            match other.newer {
                Some(newer) => return self.take(newer),
                None => {
                    let lost = format!(
                        "the copy of the header at byte {}, which is newer than the good one or of \
                         another volume",
                        other.offset
                    );
                    check_replaced(Some(lost), self.options)?;
                }
            }
        }
        let opened = self.opened(|secret| self.slot_of(&header, secret))?;
        let may_replace = self.options.accepted.contains(&State::StaleHeader);
        let is_mended = header.repair(self.device, may_replace)?;
        let mut text = match is_mended {
            true => "both copies of the header are good again\n",
            false => "both copies of the header are good\n",
        }
        .to_owned();
        text += &opened.unwrap_or_default();
        text += &told(&header.lost_keyslots(self.device)?);
        Ok(mended(text, is_mended))
    }

    /// The newer copy has lost its magic number alone, and the good one is what was before.
    fn take(&self, newer: Rebuilt) -> Result<Mended, VolumeError> {
        let opened = self.opened(|secret| self.slot_of(&newer.header, secret))?;
        self.check_stranger(newer.stranger(self.device)?)?;
        let mut text = format!(
            "the header is rebuilt from the newer copy at byte {}, which had lost only its magic \
             number; its checksum is right\n",
            newer.offset
        );
        let header = newer.write(self.device)?;
        text += &opened.unwrap_or_default();
        text += &told(&header.lost_keyslots(self.device)?);
        Ok(mended(text, true))
    }

    /// No copy is good.
    fn rebuild(&self, error: VolumeError) -> Result<Mended, VolumeError> {
        let rebuilt = match Header::rebuild(self.device, self.uuid) {
            Ok(rebuilt) => rebuilt,
            Err(VolumeError::NotThis { .. }) => return self.rebuild_luks1(error),
            Err(error) => return Err(error),
        };
        let (chosen, opened) = self.choose(rebuilt)?;
        self.check_stranger(chosen.stranger(self.device)?)?;
        self.check_guess(opened.is_some() || chosen.certainty == Certainty::Sealed)?;
        let mut text = match chosen.certainty {
            Certainty::Sealed => format!(
                "the header is rebuilt from the copy at byte {}, which had lost only its magic number; \
                 its checksum is right\n",
                chosen.offset
            ),
            Certainty::Sensible => format!(
                "the header is rebuilt from the metadata of the copy at byte {}, which are plausible; \
                 no checksum confirms them\n",
                chosen.offset
            ),
        };
        let is_renamed = chosen.is_renamed;
        let header = chosen.write(self.device)?;
        if is_renamed {
            let uuid = &header.binary.uuid;
            text += &format!("its UUID and labels are lost: the UUID is {uuid} now\n");
        }
        text += &opened.unwrap_or_default();
        text += &told(&header.lost_keyslots(self.device)?);
        Ok(mended(text, true))
    }

    /// Neither is anything left of LUKS2.
    fn rebuild_luks1(&self, error: VolumeError) -> Result<Mended, VolumeError> {
        let mut header = match luks1::Header::rebuild(self.device) {
            Ok(header) => header,
            Err(unfinished @ VolumeError::Unfinished(_)) => return Err(unfinished),
            Err(_) => return Err(error),
        };
        let opened = self.opened(|secret| {
            let (slot, limits) = (self.options.parameters.key_slot, &self.options.limits);
            Ok(header.unlock(self.device, secret, slot, limits)?.slot)
        })?;
        self.check_guess(opened.is_some())?;
        header.write(self.device)?;
        let mut text = "the LUKS1 header has its magic again\n".to_owned();
        text += &opened.unwrap_or_default();
        text += &told(&header.lost_keyslots(self.device)?);
        Ok(mended(text, true))
    }

    /// Of what can be rebuilt, what the secret opens, or the likeliest.
    fn choose(&self, rebuilt: Vec<Rebuilt>) -> Result<(Rebuilt, Option<String>), VolumeError> {
        let mut refused = None;
        for one in rebuilt {
            match self.opened(|secret| self.slot_of(&one.header, secret)) {
                Ok(opened) => return Ok((one, opened)),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.expect("something can be rebuilt"))
    }

    /// The key slot or key that the secret opens, in words, if there is a secret.
    fn opened(
        &self,
        unlock: impl FnOnce(&Secret) -> Result<Option<u32>, VolumeError>,
    ) -> Result<Option<String>, VolumeError> {
        let Some(secret) = self.secret else {
            return Ok(None);
        };
        Ok(Some(match unlock(secret)? {
            Some(slot) => format!("key slot {slot} opens with what was given\n"),
            None => "the volume key is right\n".to_owned(),
        }))
    }

    fn slot_of(&self, header: &Header, secret: &Secret) -> Result<Option<u32>, VolumeError> {
        let (slot, limits) = (self.options.parameters.key_slot, &self.options.limits);
        Ok(header.unlock(self.device, secret, slot, limits)?.slot)
    }

    /// Refuses to write over something that is not the volume's.
    fn check_stranger(&self, name: Option<String>) -> Result<(), VolumeError> {
        let Some(name) = name else { return Ok(()) };
        let accepted = &self.options.accepted;
        judge::check(Use::MendHeader, State::StaleHeader, name, accepted)
    }

    /// Refuses to write what may be wrong in some bit.
    fn check_guess(&self, is_proved: bool) -> Result<(), VolumeError> {
        let found = "a header that can be rebuilt, but nothing proves that it is right";
        match is_proved {
            true => Ok(()),
            false => judge::check(
                Use::MendHeader,
                State::Unproved,
                found,
                &self.options.accepted,
            ),
        }
    }
}

fn mended(said: String, is_changed: bool) -> Mended {
    Mended {
        said,
        is_changed,
        has_lost: false,
    }
}

/// Warnings for the key slots whose key material is lost.
fn told(lost: &[u32]) -> String {
    let line = |slot: &u32| format!("warning: the key material of key slot {slot} is gone\n");
    lost.iter().map(line).collect()
}

/// Writes the header anew from its copy, or the copy from the header: whichever
/// opens.
fn tcrypt(
    place: &Place,
    (family, secret): (Family, &Secret),
    options: &Options,
    report: Report<'_>,
) -> Result<Mended, VolumeError> {
    let device = place.data();
    let opening = options.tcrypt(family)?;
    let passphrase = secret.words(family.format())?;
    let places = match opening.place {
        At::Normal => vec![At::Normal, At::NormalBackup, At::Hidden, At::HiddenBackup],
        At::Hidden => vec![At::Hidden, At::HiddenBackup],
        place => vec![place],
    };
    let unlocked = first(&opening, &places, device, secret, (options, report))?;
    let (other, made) = match unlocked.place {
        At::Normal => (At::NormalBackup, "the copy is rewritten from the header"),
        At::Hidden => (
            At::HiddenBackup,
            "the hidden volume's copy is rewritten from its header",
        ),
        At::NormalBackup => (At::Normal, "the header is rewritten from its copy"),
        At::HiddenBackup => (
            At::Hidden,
            "the hidden volume's header is rewritten from its copy",
        ),
        At::System => (At::System, ""),
    };
    let there = known(&opening, &unlocked);
    match first(&there, &[other], device, secret, (options, report)) {
        Ok(there) if there.place == other && there.is_of_same_data(&unlocked) => {
            let good = "the header and its copy are good\n".to_owned();
            return Ok(mended(good, false));
        }
        Ok(there) if there.place == other => {
            let lost = "one of a header and its copy, which open and describe different data";
            check_replaced(Some(lost.to_owned()), options)?;
        }
        Err(stopped) if is_stop(&stopped) => return Err(stopped),
        _ => {
            let name = unlocked.stranger(device, false)?;
            let lost = name.map(|name| format!("{name}, which it holds where the header belongs"));
            check_replaced(lost, options)?;
            if unlocked.place.copy().is_some()
                && let Some(at) = unlocked.behind(device, unlocked.place)?
            {
                check_replaced(Some(strange_at(at)), options)?;
            }
        }
    }
    let sealing = unlocked.sealing(&opening);
    unlocked.restore(device, &sealing, passphrase, &options.limits)?;
    Ok(mended(format!("{made}\n"), true))
}
