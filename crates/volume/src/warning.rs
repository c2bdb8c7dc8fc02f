//! [`Warning`]: what an owner should know of a volume that opens all the same.

use crate::error::standing;
use crate::integrity::repeats_key_stream;
use crate::{Access, Damage, Format, Opened, Row, SealedMapping, Storage, VolumeError};
use block::{BlockDevice, ByteRange};
use serde_json::{Value, json};
use std::fmt;

/// Something that is wrong with a volume, or that its header leaves unprotected. The volume can be
/// read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The file or device ends before the volume does. The rest is there.
    CutOff {
        /// The bytes that there must be at least.
        needed: u64,
        /// The bytes that there are.
        got: u64,
    },
    /// None of the data are encrypted.
    Plaintext,
    /// A part of the data is not encrypted.
    Unprotected {
        /// The bytes of it.
        bytes: u64,
        /// Where the first of it is.
        first: ByteRange,
    },
    /// It cannot be known which parts of the data are encrypted.
    UnknownParts {
        /// Why.
        damage: Damage,
    },
    /// The header stores the key of the data without encryption.
    ClearKey,
    /// Every version of a sector is encrypted by the same key stream.
    RepeatedKeyStream,
    /// Nothing shows that the data are those of the header, or of the parameters.
    Unfit {
        /// What is there instead.
        found: String,
    },
    /// Both halves of a key of XTS are the same.
    EqualHalves,
    /// The data begin with the header of another LUKS volume.
    OtherVolume {
        /// The other one's UUID.
        uuid: String,
    },
    /// The data begin with a header of their own that the separate one has overtaken.
    Overtaken,
    /// A plain volume opened as cryptsetup up to 2.6 made it by default.
    EarlierPlain,
}

impl Warning {
    /// A name for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::CutOff { .. } => "cut-off",
            Self::Plaintext => "plaintext",
            Self::Unprotected { .. } => "unprotected",
            Self::UnknownParts { .. } => "unknown-parts",
            Self::ClearKey => "clear-key",
            Self::RepeatedKeyStream => "repeated-key-stream",
            Self::Unfit { .. } => "unfit",
            Self::EqualHalves => "equal-halves",
            Self::OtherVolume { .. } => "other-volume",
            Self::Overtaken => "overtaken",
            Self::EarlierPlain => "earlier-plain",
        }
    }

    /// Whether nothing protects the data.
    pub(crate) const fn is_exposed(&self) -> bool {
        matches!(self, Self::Plaintext | Self::ClearKey)
    }

    /// As JSON: `kind`, `text`, and the numbers of the text.
    pub fn to_json(&self) -> Value {
        let mut said = json!({ "kind": self.kind(), "text": self.to_string() });
        match self {
            Self::CutOff { needed, got } => {
                said["needed_bytes"] = json!(needed);
                said["device_bytes"] = json!(got);
            }
            Self::Unprotected { bytes, first } => {
                said["bytes"] = json!(bytes);
                said["offset"] = json!(first.offset);
            }
            Self::Plaintext
            | Self::UnknownParts { .. }
            | Self::ClearKey
            | Self::RepeatedKeyStream
            | Self::Unfit { .. }
            | Self::EqualHalves
            | Self::Overtaken
            | Self::EarlierPlain => {}
            Self::OtherVolume { uuid } => said["uuid"] = json!(uuid),
        }
        said
    }

    /// Why a volume with this warning is not written.
    fn refusal(&self, format: Format) -> Option<VolumeError> {
        match *self {
            Self::CutOff { needed, got } => Some(VolumeError::Cut {
                format,
                needed,
                got,
            }),
            Self::Unprotected { .. } | Self::UnknownParts { .. } => Some(converting(format)),
            // No header says so: the user does.
            Self::Plaintext if format == Format::Bitlk => Some(standing(
                format!(
                    "the data of this {} volume are not encrypted, and what is written would not be \
                     either",
                    format.title()
                ),
                "Open the volume with `read_only`. To write, encrypt it with Windows first.",
            )),
            Self::Plaintext
            | Self::ClearKey
            | Self::RepeatedKeyStream
            | Self::Unfit { .. }
            | Self::EqualHalves
            | Self::OtherVolume { .. }
            | Self::Overtaken
            | Self::EarlierPlain => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff { needed, got } => write!(
                f,
                "the volume is cut off: it had at least {needed} bytes, and {} of them are \
                 missing; the remaining data can be read",
                needed - got
            ),
            Self::Plaintext => f.write_str("the data of this volume are not encrypted"),
            Self::Unprotected { bytes, first } => {
                let end = first.offset.saturating_add(first.length);
                let more = match *bytes > first.length {
                    true => ", and other places",
                    false => "",
                };
                write!(
                    f,
                    "{bytes} bytes of this volume are not encrypted (bytes {} to {}{more}): \
                     anyone with the disk can read and change them",
                    first.offset,
                    end - 1
                )
            }
            Self::UnknownParts { damage } => write!(
                f,
                "the header does not say which parts of the data are encrypted ({damage}): parts \
                 that are not encrypted read as noise"
            ),
            Self::ClearKey => f.write_str(
                "the key of this volume is stored without encryption: anyone with the disk can \
                 read and change the data",
            ),
            Self::RepeatedKeyStream => f.write_str(
                "every version of a sector is encrypted by the same key stream, so that who has two \
                 of them reads both: copy the data into a new volume",
            ),
            Self::Unfit { found } => write!(
                f,
                "the volume {found}. Check the header, or the passphrase, cipher and hash"
            ),
            Self::EqualHalves => f.write_str(
                "both halves of the volume key are the same, so that XTS protects less: copy the \
                 data into a new volume",
            ),
            Self::OtherVolume { uuid } => {
                write!(f, "the data begin with the header of another LUKS volume, {uuid}")
            }
            Self::Overtaken => f.write_str(
                "the data begin with a header of their own, which is out of date: do not open the \
                 volume without the separate one",
            ),
            Self::EarlierPlain => f.write_str(
                "the volume was made with the defaults of cryptsetup up to 2.6: \
                 aes-cbc-essiv:sha256, 256 bits, ripemd160",
            ),
        }
    }
}

impl Opened {
    /// Leaves of the volume what `data` has, and adds the warnings. To be written, the volume must
    /// be whole and encrypted.
    pub(crate) fn judged(
        mut self,
        format: Format,
        data: &dyn BlockDevice,
        access: Access,
    ) -> Result<Self, VolumeError> {
        let got = data.geometry().size;
        let needed = match &self.bitlk {
            Some(bitlk) => bitlk.needed,
            None => {
                let sealed = self.sealed.as_ref().map(|sealed| sealed.needed(data));
                self.cut_rows(got)?.max(sealed.transpose()?.unwrap_or(0))
            }
        };
        if needed > got {
            self.warnings.push(Warning::CutOff { needed, got });
        }
        match &self.bitlk {
            Some(bitlk) => self.warnings.extend(bitlk.warnings()),
            None if self.is_null() => self.warnings.push(Warning::Plaintext),
            None => {}
        }
        let repeats = |sealed: &SealedMapping| repeats_key_stream(&sealed.encryption);
        let repeats_of = |row: &Row| repeats_key_stream(&row.mapping.spec.to_string());
        if self.sealed.as_ref().is_some_and(repeats) || self.rows.iter().any(repeats_of) {
            self.warnings.push(Warning::RepeatedKeyStream);
        }
        if access == Access::Read {
            return Ok(self);
        }
        let unsettled = self.bitlk.as_ref().is_some_and(|bitlk| bitlk.is_unsettled);
        let unsettled = unsettled.then(|| converting(format));
        let mut refusals = self.warnings.iter().map(|warning| warning.refusal(format));
        match unsettled.or_else(|| refusals.find_map(|refusal| refusal)) {
            Some(refusal) => Err(refusal),
            None => Ok(self),
        }
    }

    /// Cuts the rows where the device of `size` bytes ends. Returns the bytes that they need.
    ///
    /// Nothing behind the first missing sector stays, because the plaintext has no gaps.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`] if nothing of them is there, or they end beyond all devices.
    fn cut_rows(&mut self, size: u64) -> Result<u64, VolumeError> {
        let (mut needed, mut cut) = (0, None);
        for (nth, row) in self.rows.iter_mut().enumerate() {
            if row.storage == Storage::Header {
                continue;
            }
            let data = row.mapping.data;
            let outside = VolumeError::DataArea {
                offset: data.offset,
                length: data.length,
                device: size,
            };
            let Some(end) = data.end() else {
                return Err(outside);
            };
            needed = needed.max(end);
            if end > size && cut.is_none() {
                let sector = row.mapping.layout.size.bytes() as u64;
                let length = size.saturating_sub(data.offset) / sector * sector;
                row.mapping.data.length = length;
                let kept = nth + usize::from(length > 0);
                if kept == 0 {
                    return Err(outside);
                }
                cut = Some(kept);
            }
        }
        self.rows.truncate(cut.unwrap_or(self.rows.len()));
        Ok(needed)
    }

    /// Whether the cipher of all data is none.
    fn is_null(&self) -> bool {
        let is_null = |cipher: &str| cipher.contains("cipher_null");
        let mut rows = self.rows.iter();
        match &self.sealed {
            Some(sealed) => is_null(&sealed.encryption),
            // While a volume is encrypted in place, a part of it is not.
            None => rows.all(|row| is_null(&row.mapping.spec.to_string())),
        }
    }
}

/// The error of writing a volume of which a part is encrypted, and whose state could not be kept.
fn converting(format: Format) -> VolumeError {
    let what = format!(
        "the encryption or decryption of this {} volume has not finished",
        format.title()
    );
    standing(
        what,
        "Open the volume with `read_only`, or let Windows finish.",
    )
}
