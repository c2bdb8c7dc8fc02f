//! Hidden volumes of TrueCrypt and VeraCrypt made.

use super::create::{Created, Creation, check_pim};
use super::keys::NewKey;
use super::tcrypt::{hides, strange_at};
use super::{Options, Report, impossible};
use crate::judge::{self, State, Use};
use crate::place::Place;
use crate::tcrypt::{self, Opening, Place as At, Sealing, Unlocked};
use crate::{Secret, VolumeError};
use cipher::Key;

/// A hidden volume that is about to be made at the end of an outer one.
pub struct HiddenCreation<'a> {
    place: &'a Place,
    options: &'a Options,
    creation: tcrypt::Creation,
    size: u64,
    opening: Opening,
    outer: Unlocked,
    outer_secret: &'a Secret,
}

impl<'a> HiddenCreation<'a> {
    /// Opens the outer volume with its secret, as `options` say. `place` is open for
    /// [`Use::WriteData`]; the hidden volume gets `size` bytes and what `creation` says.
    ///
    /// # Errors
    /// [`VolumeError::Judged`] for a hidden volume that may be there, which nothing shows, and for the
    /// outer volume's data; [`VolumeError::Standing`] for data behind the outer volume, and those of
    /// unlocking.
    pub fn begin(
        place: &'a Place,
        secret: &'a Secret,
        (creation, size): (&Creation, u64),
        options: &'a Options,
        report: Report<'_>,
    ) -> Result<Self, VolumeError> {
        let family = options.family().ok_or_else(|| {
            impossible(
                "only TrueCrypt and VeraCrypt have hidden volumes",
                "Choose one of these formats.",
            )
        })?;
        let creation = creation.tcrypt(family)?;
        let opening = options.tcrypt(family)?;
        let device = place.data();
        let outer = opening.unlock(device, secret, &options.limits, report)?;
        let there = outer.mapping(device)?.data.length;
        let found = format!(
            "would be destroyed, and so would the outer volume's data in its last {size} bytes of \
             {there}"
        );
        judge::check(Use::Overwrite, State::Hidden, found, &options.accepted)?;
        match outer.behind(device, At::Hidden)? {
            Some(at) => Err(VolumeError::Standing {
                what: format!("the volume holds {}", strange_at(at)),
                instead: "Nothing was changed. If you don't need them, let the volume take them \
                          first: resize it, and allow that loss."
                    .to_owned(),
            }),
            None => Ok(Self {
                place,
                options,
                creation,
                size,
                opening,
                outer,
                outer_secret: secret,
            }),
        }
    }

    /// Whether key files open the hidden volume with its password, which may be empty then.
    pub fn has_keyfiles(&self) -> bool {
        self.creation.sealing.keyfiles.count() > 0
    }

    /// Makes the hidden volume, which opens with `new`.
    ///
    /// # Errors
    /// [`VolumeError::EmptyPassphrase`], [`VolumeError::Judged`] for a PIM that does not protect,
    /// [`VolumeError::Impossible`] if the outer volume would open with the same,
    /// [`VolumeError::Impossible`], and those of writing.
    pub fn finish(self, new: &NewKey) -> Result<Created, VolumeError> {
        if !self.has_keyfiles() {
            new.check()?;
        }
        let sealing = &self.creation.sealing;
        let accepted = &self.options.accepted;
        check_pim(self.opening.family, sealing, &new.secret, accepted)?;
        if self.outer_opens_with(sealing, &new.secret) {
            return Err(hides());
        }
        let (device, limits) = (self.place.data(), &self.options.limits);
        let made =
            self.creation
                .create_hidden(device, &self.outer, self.size, &new.secret, limits)?;
        let mapping = made.mapping(device)?;
        Ok(Created {
            uuid: None,
            cipher: made.spec.to_string(),
            key_bits: mapping.key.len() * 8,
            derivation: made.prf.to_string(),
            data: mapping.data,
            leaves_old_data: false,
        })
    }

    /// Whether a header for the hidden volume would open with the outer volume's secret:
    /// programs try the outer header first.
    fn outer_opens_with(&self, hidden: &Sealing, new: &Key) -> bool {
        let new = Secret::Passphrase(Key::from_slice(new.as_bytes()));
        let beside = Opening {
            keyfiles: hidden.keyfiles.clone(),
            ..Opening::new(self.opening.family)
        };
        let same_pim = self.opening.pim.unwrap_or(0) == hidden.pim.unwrap_or(0);
        match (
            self.opening.password(self.outer_secret),
            beside.password(&new),
        ) {
            (Ok(outer), Ok(hidden)) => same_pim && outer.as_bytes() == hidden.as_bytes(),
            _ => false,
        }
    }
}
