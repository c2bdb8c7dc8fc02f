//! Headers of TrueCrypt and VeraCrypt, which only their passphrase tells from noise.

use super::create::check_pim;
use super::keys::NewKey;
use super::{Options, Report, impossible};
use crate::judge::{self, State, Use};
use crate::place::Place;
use crate::tcrypt::{Opening, Place as At, Unlocked, forget};
use crate::{Secret, VolumeError};
use block::layer::Slice;
use block::{BlockDevice, BlockError, ByteRange};
use cipher::Key;

/// A TrueCrypt or VeraCrypt volume whose password is about to be changed.
pub struct PasswordChange<'a> {
    place: &'a Place,
    options: &'a Options,
    opening: Opening,
    unlocked: Unlocked,
    /// A copy of the header that the password opens and that no program writes any more.
    left: Option<ByteRange>,
}

impl<'a> PasswordChange<'a> {
    /// Opens the volume with the secret of now. `place` is open for [`Use::ChangeHeader`].
    ///
    /// # Errors
    /// [`VolumeError::Judged`] if the copy of the header would take the place of something else,
    /// and those of unlocking.
    pub fn begin(
        place: &'a Place,
        secret: &Secret,
        options: &'a Options,
        report: Report<'_>,
    ) -> Result<Self, VolumeError> {
        let family = options.family().ok_or_else(|| {
            impossible(
                "only TrueCrypt and VeraCrypt volumes have a password of their own",
                "Change a key slot.",
            )
        })?;
        let opening = options.tcrypt(family)?;
        let device = place.data();
        let unlocked = opening.unlock(device, secret, &options.limits, report)?;
        check_behind(&opening, &unlocked, device, secret, (options, report))?;
        let left = unlocked.left_copy(device).filter(|(end, _)| {
            // A device of larger blocks has no such end.
            let volume = Slice::new(device, ByteRange::new(0, *end));
            let found = volume.ok().zip(unlocked.place.copy()).map(|(volume, at)| {
                let known = known(&opening, &unlocked);
                first(&known, &[at], &volume, secret, (options, report))
            });
            found.is_some_and(|found| found.is_ok_and(|it| it.has_same_keys(&unlocked)))
        });
        let left = left.map(|(_, copy)| copy);
        Ok(Self {
            place,
            options,
            opening,
            unlocked,
            left,
        })
    }

    /// Whether key files open the volume with the password, which may be empty then.
    pub fn has_keyfiles(&self) -> bool {
        self.opening.keyfiles.count() > 0
    }

    /// Writes the header and its copy anew. Returns what is weak about the new password, in words.
    ///
    /// # Errors
    /// [`VolumeError::EmptyPassphrase`], [`VolumeError::Impossible`] if the other one of outer and
    /// hidden volume opens with the new password, and those of writing.
    pub fn finish(
        mut self,
        new: &NewKey,
        report: Report<'_>,
    ) -> Result<Option<String>, VolumeError> {
        if !self.has_keyfiles() {
            new.check()?;
        }
        self.check_other(&new.secret, report)?;
        let sealing = self.unlocked.sealing(&self.opening);
        let weak = check_pim(self.opening.family, &sealing, &new.secret, &[]);
        let (device, limits) = (self.place.data(), &self.options.limits);
        self.unlocked
            .change_passphrase(device, &sealing, &new.secret, limits)?;
        if let Some(copy) = self.left {
            forget(device, copy, device.geometry().size)?;
        }
        Ok(match weak {
            Err(VolumeError::Judged(finding)) => Some(finding.found),
            _ => None,
        })
    }

    /// Refuses a password that opens the other one of outer and hidden volume.
    fn check_other(&self, new: &Key, report: Report<'_>) -> Result<(), VolumeError> {
        let place = match self.opening.place {
            At::Normal | At::NormalBackup => At::Hidden,
            At::Hidden | At::HiddenBackup => At::Normal,
            At::System => return Ok(()),
        };
        let other = Opening {
            place,
            ..self.opening.clone()
        };
        let new = Secret::Passphrase(Key::from_slice(new.as_bytes()));
        match other.unlock(self.place.data(), &new, &self.options.limits, report) {
            Ok(_) => Err(hides()),
            Err(stopped @ VolumeError::Block(BlockError::Interrupted)) => Err(stopped),
            // Nothing there opens.
            Err(_) => Ok(()),
        }
    }
}

/// Outer and hidden volume would open with the same.
pub fn hides() -> VolumeError {
    impossible(
        "the hidden volume would open with the same passphrase as the outer one, so it could not be \
         reached",
        "Give the hidden volume a passphrase of its own.",
    )
}

/// Refuses to write the copy of the header that was opened over what is behind the volume,
/// unless that is such a copy.
///
/// # Errors
/// [`VolumeError::Judged`], and those of reading.
pub fn check_behind(
    opening: &Opening,
    unlocked: &Unlocked,
    device: &dyn BlockDevice,
    secret: &Secret,
    how: (&Options, Report<'_>),
) -> Result<(), VolumeError> {
    let at = unlocked.place;
    let behind = match at.copy() {
        Some(_) => unlocked.behind(device, at)?,
        None => None,
    };
    match behind {
        Some(offset) if !opens_copy(opening, unlocked, at, device, secret, how) => {
            let found = format!("at byte {offset}, where the copy of its header belongs");
            judge::check(Use::ChangeHeader, State::Behind, found, &[])
        }
        _ => Ok(()),
    }
}

/// A description of unknown data at byte `at`, which no header of the volume mentions.
pub fn strange_at(at: u64) -> String {
    format!("data behind the volume, at byte {at}, where the copy of its header belongs")
}

/// Whether the secret that opens a header at `at` opens its copy, too.
pub(super) fn opens_copy(
    opening: &Opening,
    unlocked: &Unlocked,
    at: At,
    device: &dyn BlockDevice,
    secret: &Secret,
    how: (&Options, Report<'_>),
) -> bool {
    let known = known(opening, unlocked);
    let copy = at.copy();
    copy.is_some_and(|copy| first(&known, &[copy], device, secret, how).is_ok())
}

/// The header that opens, of those at `places`.
pub(super) fn first(
    opening: &Opening,
    places: &[At],
    device: &dyn BlockDevice,
    secret: &Secret,
    (options, report): (&Options, Report<'_>),
) -> Result<Unlocked, VolumeError> {
    let mut refused = None;
    for &place in places {
        let opening = Opening {
            place,
            ..opening.clone()
        };
        match opening.unlock(device, secret, &options.limits, report) {
            Ok(unlocked) => return Ok(unlocked),
            // Another place may have one.
            Err(
                error @ (VolumeError::NoHeaderFits
                | VolumeError::Header { .. }
                | VolumeError::Block(BlockError::Io { .. })),
            ) => refused = refused.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(refused.expect("there is a place at least"))
}

/// With the derivation and the cipher that another header of the volume has.
pub(super) fn known(opening: &Opening, unlocked: &Unlocked) -> Opening {
    Opening {
        prf: Some(unlocked.prf),
        algorithms: Some(unlocked.spec.algorithms().to_vec()),
        ..opening.clone()
    }
}
