//! `cryptmark volume header repair`: a header from its other copy, or from what is
//! left of both.

use super::{RepairOptions, tcrypt};
use crate::cli::volume::backups;
use crate::cli::volume::disk::Disk;
use crate::cli::volume::losses::{accepted, at};
use crate::cli::{Failure, print_done};
use volume::judge::{self, State, Use};
use volume::luks2::{Certainty, Header, Rebuilt};
use volume::{Format, Limits, Secret, VolumeError, luks1};

/// Mends what can be mended.
pub fn run(options: &RepairOptions) -> Result<(), Failure> {
    if let Some(family) = options.volume.family() {
        return tcrypt::repair(options, family);
    }
    let devices = options.volume.devices_for_header(Use::MendHeader)?;
    let device = devices.header();
    let secret = match options.secret.is_given() {
        true => Some(
            options
                .secret
                .secret(Format::Luks2, options.volume.image())?,
        ),
        false => None,
    };
    let repair = Repair {
        options,
        device,
        secret,
    };
    if Format::detect(device)? == Some(Format::Luks1) {
        return repair.luks1();
    }
    match Header::read(device) {
        Ok(header) => repair.mend(header),
        Err(error) => repair.rebuild(error),
    }
}

struct Repair<'a> {
    options: &'a RepairOptions,
    device: &'a Disk,
    /// The secret that opens the volume, if the user gives it as a proof.
    secret: Option<Secret>,
}

impl Repair<'_> {
    /// LUKS1 has nothing to mend its header from.
    fn luks1(&self) -> Result<(), Failure> {
        let header = luks1::Header::read(self.device).map_err(|error| {
            Failure::from(error).with_remedy(
                "LUKS1 has one header and no copy of it: see `cryptmark volume header backups`, and \
                 put a backup back with `header restore`."
                    .to_owned(),
            )
        })?;
        // A table that a tool has written over it says whose the disk is now.
        let accepted = accepted(self.options.yes);
        judge::check_device(Use::MendHeader, self.device, accepted)
            .map_err(|error| at(self.options.volume.image(), error))?;
        let lost = header.lost_keyslots(self.device)?;
        let mut text = "the header is good; LUKS1 has one only, and no copy of it\n".to_owned();
        text += &told(&lost);
        print_done(&text);
        Ok(())
    }

    /// One copy is good.
    fn mend(&self, mut header: Header) -> Result<(), Failure> {
        self.refuse_stranger(header.stranger(self.device)?)?;
        let opened = self.opened(|secret| Ok(self.slot_of(&header, secret)?))?;
        let mended = header.repair(self.device, self.options.yes)?;
        let mut text = match mended {
            true => "both copies of the header are good again\n",
            false => "both copies of the header are good\n",
        }
        .to_owned();
        text += &opened.unwrap_or_default();
        text += &told(&header.lost_keyslots(self.device)?);
        self.say(text, mended)
    }

    /// No copy is good.
    fn rebuild(&self, error: VolumeError) -> Result<(), Failure> {
        let rebuilt = match Header::rebuild(self.device, self.options.uuid.as_deref()) {
            Ok(rebuilt) => rebuilt,
            Err(VolumeError::NotThis { .. }) => return self.rebuild_luks1(error),
            Err(error) => return Err(error.into()),
        };
        let (chosen, opened) = self.choose(rebuilt)?;
        self.refuse_stranger(chosen.stranger(self.device)?)?;
        self.refuse_guess(opened.is_some() || chosen.certainty == Certainty::Sealed)?;
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
        self.say(text, true)
    }

    /// Neither is anything left of LUKS2.
    fn rebuild_luks1(&self, error: VolumeError) -> Result<(), Failure> {
        let rebuilt = luks1::Header::rebuild(self.device);
        if let Err(error @ VolumeError::Unfinished(_)) = rebuilt {
            return Err(error.into());
        }
        let Ok(mut header) = rebuilt else {
            let remedy = match &error {
                VolumeError::Block(_) => return Err(error.into()),
                _ => {
                    "Nothing is left that a header could be made of: see `cryptmark volume header \
                      backups`, and put a backup back with `header restore`."
                }
            };
            return Err(Failure::from(error).with_remedy(remedy.to_owned()));
        };
        let opened = self.opened(|secret| {
            let slot = self.options.volume.key_slot();
            let unlocked = header.unlock(self.device, secret, slot, &Limits::default())?;
            Ok(unlocked.slot)
        })?;
        self.refuse_guess(opened.is_some())?;
        header.write_again(self.device)?;
        let mut text = "the LUKS1 header has its magic again\n".to_owned();
        text += &opened.unwrap_or_default();
        text += &told(&header.lost_keyslots(self.device)?);
        self.say(text, true)
    }

    /// Of what can be rebuilt, what the secret opens, or the likeliest.
    fn choose(&self, rebuilt: Vec<Rebuilt>) -> Result<(Rebuilt, Option<String>), Failure> {
        let mut refused = None;
        for one in rebuilt {
            match self.opened(|secret| Ok(self.slot_of(&one.header, secret)?)) {
                Ok(opened) => return Ok((one, opened)),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.expect("something can be rebuilt"))
    }

    /// The key slot or key that the secret opens, in words, if there is a secret.
    fn opened(
        &self,
        unlock: impl FnOnce(&Secret) -> Result<Option<u32>, Failure>,
    ) -> Result<Option<String>, Failure> {
        let Some(secret) = &self.secret else {
            return Ok(None);
        };
        Ok(Some(match unlock(secret)? {
            Some(slot) => format!("key slot {slot} opens with what was given\n"),
            None => "the volume key is right\n".to_owned(),
        }))
    }

    fn slot_of(&self, header: &Header, secret: &Secret) -> Result<Option<u32>, VolumeError> {
        let slot = self.options.volume.key_slot();
        Ok(header
            .unlock(self.device, secret, slot, &Limits::default())?
            .slot)
    }

    /// Refuses to write over something that is not the volume's.
    fn refuse_stranger(&self, name: Option<String>) -> Result<(), Failure> {
        let Some(name) = name else { return Ok(()) };
        let accepted = accepted(self.options.yes);
        let judged = judge::check(Use::MendHeader, State::StaleHeader, name, accepted);
        judged.map_err(|error| at(self.options.volume.image(), error))
    }

    /// Refuses to write what may be wrong in some bit.
    fn refuse_guess(&self, is_proved: bool) -> Result<(), Failure> {
        match is_proved || self.options.yes {
            true => Ok(()),
            false => Err(Failure::new(
                4,
                "the header can be rebuilt, but nothing proves that it is right",
                "Prove it with --passphrase-file or --key-file, which must open it, or give --yes.",
            )),
        }
    }

    fn say(&self, mut text: String, changed: bool) -> Result<(), Failure> {
        if let (true, Some(path)) = (changed, backups::kept()) {
            text += &format!("the previous contents are kept in {}\n", path.display());
        }
        print_done(&text);
        Ok(())
    }
}

/// Warnings for the key slots whose key material is lost.
fn told(lost: &[u32]) -> String {
    let line = |slot: &u32| format!("warning: the key material of key slot {slot} is gone\n");
    lost.iter().map(line).collect()
}
