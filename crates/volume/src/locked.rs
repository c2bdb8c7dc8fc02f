//! [`Locked`]: a volume that is found at its place, and not yet open.

use crate::beside::Meanwhile;
use crate::judge::{self, State, Use};
use crate::opening::{Opened, Terms};
use crate::volume::{OpenOptions, check_searched, detect};
use crate::{Access, Format, Opening, Parameters, Place, Secret, VolumeError, Warning, tcrypt};
use block::signature;
use cipher::Key;

/// A volume that is found at its place, and not yet open.
pub struct Locked<'a> {
    place: &'a Place,
    options: &'a OpenOptions<'a>,
    format: Format,
    opening: Opening,
    /// The same as programs of before have made it, if nothing says how it was made.
    earlier: Option<Opening>,
    meanwhile: Option<Meanwhile>,
    opens_by_itself: bool,
}

impl<'a> Locked<'a> {
    /// Finds the volume at `place`, and refuses what needs no secret to be refused.
    ///
    /// # Errors
    /// Those of [`Volume::on`](crate::Volume::on), but those of the secret.
    pub fn find(place: &'a Place, options: &'a OpenOptions<'a>) -> Result<Self, VolumeError> {
        let (header, data) = (place.header(), place.data());
        let is_written = options.access == Access::Write;
        if is_written {
            // It might change the data by which the reencryption recognises them.
            if place.is_beside() {
                return Err(VolumeError::RecoveryNeeded);
            }
            // Losses that can be accepted are asked for when all is known.
            judge::check_device(Use::WriteData, header, &State::ALL)?;
            if place.is_apart() {
                judge::check_device(Use::WriteData, data, &State::ALL)?;
            }
        }
        let meanwhile = Meanwhile::of(options.format, &options.parameters, header)?;
        let none = Parameters::default();
        let parameters = match &meanwhile {
            Some(_) => &none,
            None => &options.parameters,
        };
        let format = match (&meanwhile, options.format) {
            (Some(_), _) => Format::Luks2,
            (None, Some(format)) => format,
            (None, None) => detect(header)?,
        };
        let is_luks = matches!(format, Format::Luks1 | Format::Luks2);
        if place.is_beside() && !is_luks {
            return Err(VolumeError::Reencrypting);
        }
        check_searched(format, parameters, header)?;
        if place.is_apart() && !is_luks {
            return Err(VolumeError::Foreign {
                parameter: "header",
                format,
                formats: &[Format::Luks1, Format::Luks2],
            });
        }
        let mut opening = parameters.opening(format)?;
        if let (Opening::Tcrypt(tcrypt), Some((_, start))) = (&mut opening, place.disk())
            && tcrypt.place == tcrypt::Place::System
        {
            tcrypt.partition = Some(start);
        }
        let earlier = match format {
            Format::Plain => parameters.earlier_plain()?.map(Opening::Plain),
            _ => None,
        };
        #[cfg(target_os = "linux")]
        if is_written
            && crate::luks2::Header::read(header).is_ok_and(|it| it.reencrypted_by().is_some())
        {
            return Err(VolumeError::Reencrypting);
        }
        Ok(Self {
            opens_by_itself: opening.needs_no_secret(header)?,
            place,
            options,
            format,
            opening,
            earlier,
            meanwhile,
        })
    }

    /// Its format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Whether it opens without any secret.
    pub const fn opens_by_itself(&self) -> bool {
        self.opens_by_itself
    }

    /// Opens it; `watch` hears how far the search for TrueCrypt's key derivation is.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`Opening::unlock`].
    pub fn unlock(
        &self,
        secret: Option<&Secret>,
        watch: tcrypt::Watch,
    ) -> Result<Opened, VolumeError> {
        let mixed = match (&self.meanwhile, secret) {
            (Some(meanwhile), Some(secret)) => Some(meanwhile.secret(secret)?),
            _ => None,
        };
        let none = Secret::Passphrase(Key::from_slice(&[]));
        let secret = match mixed.as_ref().or(secret) {
            Some(secret) => secret,
            None if self.opens_by_itself => &none,
            None => {
                let format = self.format;
                return Err(VolumeError::NoSecret { format });
            }
        };
        let reading = Terms::reading(&self.options.limits, watch);
        let is_named = |opening| -> Result<bool, VolumeError> {
            let opened = self.opened(opening, secret, &reading)?;
            let view = opened.device(self.place.header(), self.place.data())?;
            // What cannot be read here says nothing, and is said when it is read.
            Ok(signature::names(&*view).is_ok_and(|names| !names.is_empty()))
        };
        let earlier = match &self.earlier {
            Some(earlier) if !is_named(&self.opening)? && is_named(earlier)? => Some(earlier),
            _ => None,
        };
        let terms = Terms {
            access: self.options.access,
            accepted: self.options.accepted,
            ..reading
        };
        let mut opened = self.opened(earlier.unwrap_or(&self.opening), secret, &terms)?;
        if earlier.is_some() {
            opened.warnings.push(Warning::EarlierPlain);
        }
        Ok(opened)
    }

    fn opened(
        &self,
        opening: &Opening,
        secret: &Secret,
        terms: &Terms,
    ) -> Result<Opened, VolumeError> {
        let header = match (opening, self.place.disk()) {
            // The header of an encrypted system is on the disk, before its partitions.
            (Opening::Tcrypt(tcrypt), Some((disk, _))) if tcrypt.partition.is_some() => disk,
            _ => self.place.header(),
        };
        opening.unlock(header, self.place.data(), secret, terms)
    }
}
