//! Whether a place may be written: one table of what can stand there and what is to be done.
//!
//! ```text
//!                 read  write data  change header  change layout  mend header  reencrypt  encrypt  overwrite
//! data              –       –             –              –             –           –         –         ask
//! stale header      –      no            no             no            ask         no         –         ask
//! member            –      no            no             no            no          no        no         ask
//! unfinished        –      no            no             no            no          no        no         ask
//! other header      –      no             –             no             –          no         –         ask
//! unencrypted       –      ask            –             ask            –          ask        –         ask
//! unknown           –      ask            –              –             –          ask        –         ask
//! exposed           –      ask            –              –             –           –         –         ask
//! weak              –       –             –              –             –          ask       ask        ask
//! keyslots          –       –             –              –             –          ask        –         ask
//! hidden            –       –             –              –             –          ask        –         ask
//! behind            –       –            no             ask            –          ask        –         ask
//! cut off           –       –             –             ask            –           –         –         ask
//! replaced          –       –             –              –            ask          –         –         ask
//! unproved          –       –             –              –            ask          –         –         ask
//! ```
//!
//! [`Use::ruling`] is that table. [`check_device`] looks at a device before it is written, and
//! [`check_together`] at data that are about to be written through a header or parameters from
//! elsewhere.

use crate::luks_header::Own;
use crate::{
    Format, LuksHeader, VolumeError, Warning, luks, luks2, parts, rest, unaligned, unfinished,
};
use block::signature::{self, Bytes, Found};
use block::{AlignedBuffer, BlockDevice, ByteRange, Hold};
use std::fmt;

/// What is to be done with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// It is read.
    Read,
    /// Data are written as the volume's format has them.
    WriteData,
    /// Key slots, names or sizes in a header are changed.
    ChangeHeader,
    /// The format of a header, or the length of the data, is changed.
    ChangeLayout,
    /// A header is written where there may be none.
    MendHeader,
    /// All data are encrypted anew, or decrypted for good.
    Reencrypt,
    /// Data that are not encrypted are encrypted where they are.
    Encrypt,
    /// All of it is replaced.
    Overwrite,
}

named! {
    /// What stands at a place that is to be written.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum State {
        /// Anything but zeros or ones.
        Data = "data",
        /// Only a copy of a header, beside something that took the header's place.
        StaleHeader = "stale-header",
        /// One disk of an array, whose other disks would differ from it.
        Member = "member",
        /// The work of another program, which has marked the volume as its own and has not finished.
        Unfinished = "unfinished",
        /// Data with a header of their own, which contradicts the header that is used.
        OtherHeader = "other-header",
        /// Data that are not encrypted, where a header or parameters say that they are.
        Unencrypted = "unencrypted",
        /// Data that decrypt to noise.
        Unknown = "unknown",
        /// A volume whose header turns the protection off: no cipher, or a key that is not encrypted.
        Exposed = "exposed",
        /// Nothing yet, and a cipher or a derivation is chosen that does not protect.
        Weak = "weak",
        /// A volume with key slots whose secrets are not given.
        Keyslots = "keyslots",
        /// A volume with room for a hidden one, which only its own secret shows.
        Hidden = "hidden",
        /// A volume with data behind its end.
        Behind = "behind",
        /// Data behind the new end of a volume.
        CutOff = "cut-off",
        /// A header with keys, or something else, in the place of the one that is written.
        Replaced = "replaced",
        /// The remains of a header, from which it is made again by what is likely.
        Unproved = "unproved",
    }
}

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ruling {
    /// It may be done.
    Allowed,
    /// It may be done if the user accepts the loss.
    Ask,
    /// It is not done.
    Refused,
}

impl Use {
    /// All uses.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::WriteData,
        Self::ChangeHeader,
        Self::ChangeLayout,
        Self::MendHeader,
        Self::Reencrypt,
        Self::Encrypt,
        Self::Overwrite,
    ];

    /// Whether it takes seconds, so that others that do the same wait for it.
    const fn is_brief(self) -> bool {
        matches!(
            self,
            Self::ChangeHeader | Self::ChangeLayout | Self::MendHeader
        )
    }

    /// Whom it keeps out; with `steady`, writers as well if it only reads.
    pub const fn hold(self, steady: bool) -> Hold {
        match self.is_brief() {
            true => Hold::Brief,
            false if steady => Hold::Steady,
            false => Hold::Usual,
        }
    }

    /// The use of a device without the header, which is on another one if `is_apart`.
    pub const fn of_data(self, is_apart: bool) -> Self {
        match self {
            Self::ChangeHeader | Self::MendHeader if is_apart => Self::Read,
            other => other,
        }
    }

    /// What is allowed where there is `state`.
    pub const fn ruling(self, state: State) -> Ruling {
        use Ruling::{Allowed, Ask, Refused};
        use Use::{
            ChangeHeader, ChangeLayout, Encrypt, MendHeader, Overwrite, Read, Reencrypt, WriteData,
        };
        match (state, self) {
            (_, Read) => Allowed,
            (_, Overwrite) => Ask,
            (State::Data, _) => Allowed,
            (State::StaleHeader, Encrypt) => Allowed,
            (State::StaleHeader, MendHeader) => Ask,
            (State::StaleHeader, _) => Refused,
            (State::Member, _) => Refused,
            (State::Unfinished, _) => Refused,
            (State::OtherHeader, WriteData | ChangeLayout | Reencrypt) => Refused,
            (State::OtherHeader, _) => Allowed,
            (State::Unencrypted | State::Unknown, WriteData | Reencrypt) => Ask,
            (State::Unencrypted, ChangeLayout) => Ask,
            (State::Unencrypted | State::Unknown, _) => Allowed,
            (State::Exposed, WriteData) => Ask,
            (State::Weak, Encrypt | Reencrypt) => Ask,
            (State::Keyslots | State::Hidden, Reencrypt) => Ask,
            (State::Behind, ChangeHeader) => Refused,
            (State::Behind, ChangeLayout | Reencrypt) => Ask,
            (State::CutOff, ChangeLayout) => Ask,
            (State::Replaced | State::Unproved, MendHeader) => Ask,
            (
                State::Exposed
                | State::Weak
                | State::Keyslots
                | State::Hidden
                | State::Behind
                | State::CutOff
                | State::Replaced
                | State::Unproved,
                _,
            ) => Allowed,
        }
    }
}

/// What was found at a place, and what was to be done there. `Display` is a sentence without its
/// subject, such as `holds an ext4 file system`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What stands there.
    pub state: State,
    /// What is not done because of it.
    pub use_: Use,
    /// What exactly was found.
    pub found: String,
    /// Whether it stands where the header is, which is apart from the data.
    pub in_header: bool,
}

impl Finding {
    /// The same, of the place of a header that is apart.
    pub(crate) fn of_header(error: VolumeError) -> VolumeError {
        match error {
            VolumeError::Judged(finding) => VolumeError::Judged(Box::new(Self {
                in_header: true,
                ..*finding
            })),
            error => error,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        match self.state {
            State::Data => write!(f, "holds {found}"),
            State::StaleHeader => write!(
                f,
                "holds {found} in the place of its header, and what is left of that header is older"
            ),
            State::Member => write!(f, "is {found}, and the other disks would differ from it"),
            State::Unfinished | State::Exposed | State::OtherHeader => f.write_str(found),
            State::Weak => write!(f, "would be weak: {found}"),
            State::Keyslots => write!(f, "would lose {found}, whose secrets were not given"),
            State::Hidden => write!(
                f,
                "may have a hidden volume, which {found}; only its passphrase can reveal one"
            ),
            State::Behind => write!(
                f,
                "holds data behind the volume, {found}, which would be lost"
            ),
            State::CutOff => write!(f, "would lose {found}, which would be cut off"),
            State::Replaced => write!(f, "would lose {found}"),
            State::Unproved => write!(f, "has {found}"),
            State::Unencrypted => {
                write!(
                    f,
                    "holds {found}, which would not be there if the data were encrypted this way"
                )
            }
            State::Unknown => write!(
                f,
                "holds {found} that decrypt to noise: encrypted data looks like this if its key is \
                 another one"
            ),
        }
    }
}

impl Finding {
    /// What the table says.
    pub const fn ruling(&self) -> Ruling {
        self.use_.ruling(self.state)
    }

    /// The remedy. A loss is allowed by its name.
    pub fn remedy(&self) -> String {
        let allow = format!("allow `{}`", self.state.name());
        self.advice().replace("ALLOW", &allow)
    }

    const fn advice(&self) -> &'static str {
        match (self.state, self.ruling()) {
            (State::StaleHeader, Ruling::Ask) if matches!(self.use_, Use::MendHeader) => {
                "Nothing was changed. If you want the encrypted volume back instead of that, ALLOW."
            }
            (State::Weak, _) => {
                "Choose aes-xts-plain64, and for VeraCrypt a longer passphrase or a larger PIM. If \
                 that is what you want all the same, ALLOW."
            }
            (State::Keyslots, _) => {
                "Where the volume stays encrypted, give each passphrase or key file with \
                 `keep_passphrase_file` or `keep_key_file`. If they may be lost, ALLOW."
            }
            (State::Hidden, _) => "Nothing was changed. If there is none, ALLOW.",
            (State::Behind, Ruling::Refused) => {
                "Nothing was changed. If you don't need them, repair the header, and allow that loss."
            }
            (State::Behind, _) => "Nothing was changed. If you don't need them, ALLOW.",
            (State::Replaced, _) => {
                "Nothing was changed. If the header belongs there all the same, ALLOW."
            }
            (State::Unproved, _) => {
                "Nothing was changed. Prove it with a passphrase or key file, which must open it, or \
                 ALLOW."
            }
            (State::CutOff, _) => {
                "Nothing was changed. Make the file system in it smaller first, then ALLOW."
            }
            _ if matches!(self.use_, Use::Overwrite) => {
                "All of that would be lost. If you don't need it, ALLOW."
            }
            (State::StaleHeader, _) => {
                "Nothing was changed. The device has become something else since. Open the old \
                 volume for reading only, and copy its data elsewhere; or repair its header, which \
                 overwrites what stands there."
            }
            (State::Member, _) => {
                "Nothing was changed. Assemble the array with the program that made it, and name \
                 the array's device. If there is no array any more, remove its superblock first."
            }
            (State::OtherHeader, _) => {
                "Nothing was changed. Compare the data by each of both headers. Omit the separate \
                 one, or restore it to the start of the volume if it is the right one."
            }
            (State::Unencrypted, _) => {
                "Nothing was changed. Check that it is the right device and the right header. If \
                 you don't need these data, ALLOW."
            }
            (State::Unknown, _) => {
                "Nothing was changed. Check the header, the passphrase, the cipher and the hash. \
                 If all of them are right, ALLOW."
            }
            (State::Exposed, _) => {
                "Nothing was changed. Make a new volume for data that must be protected. To write \
                 to this one all the same, ALLOW."
            }
            (State::Data | State::Unfinished, _) => "",
        }
    }
}

/// Refuses `use_` because of `found`, unless the table or one of the `accepted` losses allows it.
///
/// # Errors
/// [`VolumeError::Judged`].
pub fn check(
    use_: Use,
    state: State,
    found: impl Into<String>,
    accepted: &[State],
) -> Result<(), VolumeError> {
    match use_.ruling(state) {
        Ruling::Allowed => Ok(()),
        Ruling::Ask if accepted.contains(&state) => Ok(()),
        Ruling::Ask | Ruling::Refused => Err(VolumeError::Judged(Box::new(Finding {
            state,
            use_,
            found: found.into(),
            in_header: false,
        }))),
    }
}

/// Does `work` with these losses accepted, and again with each more that `ask` accepts when it is
/// told what was found. The questions of a work come before its first write, and the place is held
/// by the caller, so that an answer is about what was found.
///
/// # Errors
/// Those of `work`, such as [`VolumeError::Judged`] for what is not accepted.
pub fn asking<T>(
    accepted: &[State],
    mut ask: impl FnMut(&Finding) -> bool,
    mut work: impl FnMut(&[State]) -> Result<T, VolumeError>,
) -> Result<T, VolumeError> {
    let mut accepted = accepted.to_vec();
    loop {
        match work(&accepted) {
            Err(VolumeError::Judged(finding))
                if finding.ruling() == Ruling::Ask
                    && !accepted.contains(&finding.state)
                    && ask(&finding) =>
            {
                accepted.push(finding.state);
            }
            done => return done,
        }
    }
}

/// Refuses `use_` of a whole device because of what stands there. [`Use::Overwrite`] is judged by
/// [`check`] with all that is known of the content.
///
/// # Errors
/// [`VolumeError::Judged`], and those of reading.
pub fn check_device(
    use_: Use,
    device: &dyn BlockDevice,
    accepted: &[State],
) -> Result<(), VolumeError> {
    if matches!(use_, Use::Read | Use::Overwrite) {
        return Ok(());
    }
    if let (Some(unfinished), Ruling::Refused) =
        (unfinished(device), use_.ruling(State::Unfinished))
    {
        return Err(VolumeError::Unfinished(unfinished));
    }
    let names = names(device)?;
    if let Some(array) = names.iter().find(|found| found.is_member()) {
        check(use_, State::Member, array.name, accepted)?;
    }
    match stranger(device)? {
        Some(name) => check(use_, State::StaleHeader, name, accepted),
        None => Ok(()),
    }
}

/// Refuses to write by a second header of LUKS2 if data without a name stand where the first one
/// was.
///
/// # Errors
/// [`VolumeError::Judged`], and those of reading.
pub(crate) fn check_first_header(
    use_: Use,
    device: &dyn BlockDevice,
    accepted: &[State],
) -> Result<(), VolumeError> {
    match LuksHeader::read(device) {
        Ok(LuksHeader::Luks2(header)) => match header.nameless(device)? {
            Some(name) => check(use_, State::StaleHeader, name, accepted),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// What `device` holds, if all of the places that tell it can be read.
pub(crate) fn names(device: &dyn BlockDevice) -> Result<Vec<Found>, VolumeError> {
    match signature::names(device) {
        Err(error) if error.is_of_place() => Ok(Vec::new()),
        names => Ok(names?),
    }
}

/// The name of what stands in the space of a LUKS header beside it.
fn stranger(device: &dyn BlockDevice) -> Result<Option<String>, VolumeError> {
    // Tools that write a partition table leave the start of its sector alone.
    let start = unaligned::read_up_to(device, 0, 512);
    if start.is_ok_and(|start| start.starts_with(luks::MAGIC))
        && let Some(table) = parts::table(device)?
    {
        return Ok(Some(table.to_owned()));
    }
    match LuksHeader::read(device) {
        Ok(LuksHeader::Luks2(header)) => match header.stranger(device)? {
            Some(name) => Ok(Some(name)),
            None => {
                let copies = ByteRange::new(0, 2 * header.binary.header_size);
                beside(device, header.bytes_with_keyslots(), vec![copies])
            }
        },
        Ok(LuksHeader::Luks1(header)) => {
            let mut own = luks2::own_copies(device, &header)?;
            own.push(ByteRange::new(0, LUKS1_BYTES));
            beside(device, header.bytes_with_keyslots(), own)
        }
        Err(VolumeError::Block(error)) if !error.is_of_place() => Err(error.into()),
        // A header that is damaged is no reason to say more than that it is.
        Err(_) => Ok(None),
    }
}

/// The name of a LUKS volume that was found at the start of `device`: by its version, name and key slots, which cannot be made again.
pub fn known_better(found: &Found, device: &dyn BlockDevice) -> Option<String> {
    (found.name == signature::LUKS && found.at == 0).then_some(())?;
    let format = Format::detect(device).ok()??;
    let header = LuksHeader::read(device).ok()?;
    let uuid = header.uuid();
    let label = match &header {
        LuksHeader::Luks1(_) => String::new(),
        LuksHeader::Luks2(header) => header.binary.label.to_string(),
    };
    let label = match label.is_empty() {
        true => String::new(),
        false => format!(" \"{}\"", label.escape_debug()),
    };
    let slots = header.numbers();
    let slots: Vec<String> = slots.iter().map(u32::to_string).collect();
    let slots = match slots.as_slice() {
        [] => "no key slots".to_owned(),
        [one] => format!("key slot {one}"),
        several => format!("key slots {}", several.join(", ")),
    };
    Some(format!(
        "a {} volume{label} (UUID {uuid}, {slots})",
        format.title()
    ))
}

/// Bytes of a LUKS1 header.
const LUKS1_BYTES: u64 = 592;

fn beside(
    device: &dyn BlockDevice,
    space: u64,
    own: Vec<ByteRange>,
) -> Result<Option<String>, VolumeError> {
    rest::stranger(device, ByteRange::new(0, space), own)
}

/// Refuses to write through a header that is apart if the volume on `data` has one of its own which
/// contradicts it, because what is written would be noise by that one. Returns what is to be known
/// of that one if it does not.
pub(crate) fn check_own_header(
    use_: Use,
    header: &dyn BlockDevice,
    data: &dyn BlockDevice,
) -> Result<Option<Warning>, VolumeError> {
    let (Ok(header), Ok(own)) = (LuksHeader::read(header), LuksHeader::read(data)) else {
        return Ok(None);
    };
    match header.own(&own) {
        Own::Same | Own::Erased => Ok(None),
        Own::Other => Ok(Some(Warning::OtherVolume { uuid: own.uuid() })),
        Own::Older => Ok(Some(Warning::Overtaken)),
        contradicts => check_contradiction(use_, contradicts, &[]).map(|()| None),
    }
}

/// Refuses to write to data of which a header of their own says something else than the one that
/// is used.
pub(crate) fn check_contradiction(
    use_: Use,
    own: Own,
    accepted: &[State],
) -> Result<(), VolumeError> {
    let found = match own {
        Own::Newer => {
            "begins with a header of its own, which knows of a change of the data that the separate \
             one is from before"
        }
        _ => "begins with a header of its own, by which its data are encrypted differently",
    };
    check(use_, State::OtherHeader, found, accepted)
}

/// Refuses to write to data of which nothing shows that they belong to the header, or to the
/// parameters, by which they decrypt. `stored` is where the data lie, as they are stored there, and
/// `plaintext` is the same decrypted.
///
/// They belong together if anything in the plaintext differs from noise. Blocks that were never
/// written show nothing, so there is nothing to compare on a fresh device.
///
/// # Errors
/// [`VolumeError::Judged`], and those of reading.
pub fn check_together(
    use_: Use,
    stored: &dyn BlockDevice,
    plaintext: &dyn BlockDevice,
    accepted: &[State],
) -> Result<(), VolumeError> {
    if matches!(use_, Use::Read) || !names(plaintext)?.is_empty() {
        return Ok(());
    }
    let named = names(stored)?;
    if let Some(found) = named.first() {
        let words = known_better(found, stored).unwrap_or_else(|| found.to_string());
        return check(use_, State::Unencrypted, words, accepted);
    }
    let mut noise = None;
    let mut buffers = [AlignedBuffer::new(0), AlignedBuffer::new(0)];
    for range in signature::samples(stored.geometry().size.min(plaintext.geometry().size)) {
        let unit = u64::from(plaintext.geometry().logical_block);
        let range = ByteRange::new(range.offset & !(unit - 1), range.length & !(unit - 1));
        for (device, buffer) in [stored, plaintext].iter().zip(&mut buffers) {
            *buffer = AlignedBuffer::new(range.length as usize);
            match device.read_at(range.offset, buffer) {
                // Zeros, which show nothing.
                Err(error) if error.is_of_place() => buffer.fill(0),
                read => read?,
            }
        }
        let [stored, plain] = &buffers;
        for (at, (stored, plain)) in (range.offset..)
            .step_by(SECTOR)
            .zip(stored.chunks_exact(SECTOR).zip(plain.chunks_exact(SECTOR)))
        {
            match (kind_as_stored(stored), Bytes::of(plain)) {
                (Bytes::Blank, _) => {}
                (_, Bytes::Blank | Bytes::Readable) => return Ok(()),
                (Bytes::Readable, Bytes::Noise) => {
                    let found = format!("readable data at byte {at}");
                    return check(use_, State::Unencrypted, found, accepted);
                }
                (Bytes::Noise, Bytes::Noise) => noise = noise.or(Some(at)),
            }
        }
    }
    match noise {
        Some(at) => {
            let found = format!("data from byte {at} on");
            check(use_, State::Unknown, found, accepted)
        }
        None => Ok(()),
    }
}

/// The kind of a sector as it is stored. One that was written in part, over a sector of zeros, has
/// blocks of a cipher that are zeros still. It is no noise, and shows nothing.
fn kind_as_stored(sector: &[u8]) -> Bytes {
    let (blocks, _) = sector.as_chunks::<16>();
    let written: Vec<u8> = blocks
        .iter()
        .filter(|block| **block != [0; 16])
        .flatten()
        .copied()
        .collect();
    match (written.len() == sector.len(), Bytes::of(&written)) {
        (true, kind) | (false, kind @ Bytes::Readable) => kind,
        (false, _) => Bytes::Blank,
    }
}

/// The unit that is compared, bytes.
const SECTOR: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use block::RamDevice;

    const SIZE: usize = 1 << 20;

    #[test]
    fn the_table_has_no_gaps() {
        for state in State::ALL {
            assert_eq!(State::named(state.name()), Some(state));
            assert_eq!(Use::Read.ruling(state), Ruling::Allowed);
            assert_eq!(Use::Overwrite.ruling(state), Ruling::Ask);
            for use_ in Use::ALL {
                let judged = |accepted: &[State]| check(use_, state, "it", accepted).is_ok();
                let ruling = use_.ruling(state);
                assert_eq!(judged(&[]), ruling == Ruling::Allowed, "{state:?} {use_:?}");
                assert_eq!(
                    judged(&[state]),
                    ruling != Ruling::Refused,
                    "{state:?} {use_:?}"
                );
                let others: Vec<State> = State::ALL.into_iter().filter(|it| *it != state).collect();
                assert_eq!(
                    judged(&others),
                    ruling == Ruling::Allowed,
                    "{state:?} {use_:?}"
                );
            }
        }
        assert_eq!(State::named("anything"), None);
    }

    fn device(fill: impl Fn(usize) -> u8) -> RamDevice {
        let bytes: Vec<u8> = (0..SIZE).map(fill).collect();
        let device = RamDevice::new(SIZE as u64);
        device.write_at(0, &bytes).unwrap();
        device
    }

    /// Bytes like noise.
    fn noise(at: usize) -> u8 {
        let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits ^= bits >> 31;
        (bits.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as u8
    }

    #[test]
    fn data_belong_to_what_makes_sense_of_them() {
        let blank = || device(|_| 0);
        let erased = || device(|_| 0xff);
        let noisy = || device(noise);
        let text = || device(|at| b"a letter to a friend "[at % 21]);
        let named = || device(|at| *b"LUKS\xba\xbe".get(at).unwrap_or(&noise(at)));
        // Only the first block of a cipher in each sector was ever written.
        let begun = || device(|at| if at % 512 < 16 { noise(at) | 1 } else { 0 });
        let late = || device(|at| if at < SIZE / 2 { 0 } else { noise(at) });
        for (stored, plain, expected) in [
            (blank(), noisy(), None),
            (erased(), noisy(), None),
            (begun(), noisy(), None),
            (noisy(), blank(), None),
            (noisy(), text(), None),
            (noisy(), named(), None),
            (named(), named(), None),
            (late(), text(), None),
            (noisy(), noisy(), Some(State::Unknown)),
            (late(), noisy(), Some(State::Unknown)),
            (text(), noisy(), Some(State::Unencrypted)),
            (named(), noisy(), Some(State::Unencrypted)),
        ] {
            for use_ in Use::ALL {
                let judged = |accepted: &[State]| check_together(use_, &stored, &plain, accepted);
                let refused = match judged(&[]) {
                    Ok(()) => None,
                    Err(VolumeError::Judged(finding)) => Some(finding.state),
                    Err(error) => panic!("{error}"),
                };
                let expected = expected.filter(|state| use_.ruling(*state) != Ruling::Allowed);
                assert_eq!(refused, expected, "{use_:?}");
                assert!(judged(&State::ALL).is_ok());
            }
        }
    }
}
