//! [`Backups`]: headers as they were before an operation changes them, in a folder.
//!
//! A caller says once that it changes headers. Whatever it then opens for writing is looked at, and
//! the header there is kept first. A header that is kept already is not kept twice.
//!
//! Headers of TrueCrypt and VeraCrypt volumes are never kept. A copy in which only the place of the
//! hidden header differs from the volume would prove that there is a hidden volume.

use super::header::{TCRYPT_HEADERS, bounded, read};
use crate::judge::Use;
use crate::place::open_file;
use crate::{Hash, LuksHeader, VolumeError};
use block::signature::{self, Content};
use block::{BlockDevice, ByteRange, hold};
use std::fs::DirBuilder;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kind of a backup of both ends of a device, perhaps VeraCrypt's headers.
pub const ENDS: &str = "ends";

/// The kind of a backup of the start of a device without a header.
pub const START_ONLY: &str = "start";

/// A backup that is stored.
pub struct Stored {
    /// Its file.
    pub path: PathBuf,
    /// The volume's UUID, or a word for its kind.
    pub volume: String,
    /// Where the volume was.
    pub mark: String,
    /// The command that was about to change it.
    pub command: String,
    /// When it was made: `20260102T030405…`.
    pub time: String,
    /// The format's name, or what was kept if there was no header.
    pub kind: String,
}

/// The length of the start of a volume that may hold an unreadable header and its key slots, bytes.
const START: u64 = 16 << 20;

/// The range behind a header that TrueCrypt and VeraCrypt fill with noise.
const BESIDE_HEADER: Range<usize> = 512..64 << 10;

/// Stands for a UUID that is none.
const UNNAMED: &str = "unnamed";

/// Backups of a volume that are left.
const KEPT: usize = 3;

/// The change that a command makes to headers.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The name of the command, as the user types it; part of a file's name.
    pub command: &'static str,
    /// The copy to keep if there is no readable header.
    pub otherwise: Otherwise,
}

/// The part of a device that is kept if it has no readable header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// Nothing: the command itself will find that there is none.
    Nothing,
    /// Both ends, if they are noise: perhaps a header of VeraCrypt's.
    Ends,
    /// The start, where the header belongs.
    Start,
}

/// The backups of one command.
#[derive(Default)]
pub struct Backups {
    /// The change that the command makes, if headers are kept before it, and the folder for them.
    change: Option<(Change, Option<PathBuf>)>,
    state: Mutex<State>,
}

/// The copies that a command has kept.
#[derive(Default)]
struct State {
    seen: Vec<PathBuf>,
    kept: Option<PathBuf>,
    /// Older backups that go when the command has succeeded.
    surplus: Vec<PathBuf>,
}

impl Backups {
    /// The backups of a command that makes this change, in a folder that is made if need be.
    pub fn before(change: Option<(Change, Option<PathBuf>)>) -> Self {
        Self {
            change,
            ..Self::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes older backups, after the command has succeeded. A command that fails may have been
    /// about to restore one of them.
    pub fn end(&self) {
        for path in self.state().surplus.drain(..) {
            // One backup too many does no harm, and another process may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Leaves the backup at `path` where it is, which this command has restored.
    pub fn spare(&self, path: &Path) {
        let spared = |other: &PathBuf| !hold::is_same(other, path);
        self.state().surplus.retain(spared);
    }

    /// Where the header of this command's volume was kept, if it was.
    pub fn kept(&self) -> Option<PathBuf> {
        self.state().kept.clone()
    }

    /// Keeps the header on `disk`, which is at `place` and called `name`, if this command changes
    /// headers and has not kept that one yet.
    ///
    /// # Errors
    /// [`VolumeError::NotKept`], [`VolumeError::NoBackupFolder`], and those of reading it.
    pub fn keep(
        &self,
        place: &Path,
        name: PathBuf,
        disk: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        let mut state = self.state();
        let is_new = !is_own(place) && !state.seen.contains(&name);
        let Some((change, folder)) = self.change.as_ref().filter(|_| is_new) else {
            return Ok(());
        };
        if let Some(copy) = Copy::of(disk, *change)? {
            let folder = folder.as_ref().ok_or(VolumeError::NoBackupFolder)?;
            let stored = copy.store(folder, &name, change.command);
            let (kept, surplus) = stored.map_err(|source| VolumeError::NotKept {
                folder: folder.clone(),
                source,
            })?;
            state.kept = Some(kept);
            state.surplus.extend(surplus);
        }
        state.seen.push(name);
        Ok(())
    }
}

/// Whether this is a file of this program's own, and not a volume of the user's.
fn is_own(place: &Path) -> bool {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".cryptmark-") || name.ends_with(".cryptmark-header")
}

/// A header, as a file has it.
struct Copy {
    /// The UUID, or another word for the kind of volume.
    volume: String,
    /// The format's name, or that it is not known.
    kind: &'static str,
    /// From the start of the header on; zeros for what is not in use.
    bytes: Vec<u8>,
    /// The header itself, if it is one of LUKS.
    header: Option<LuksHeader>,
}

impl Copy {
    /// The header on `disk`, if there is anything to keep.
    fn of(disk: &dyn BlockDevice, change: Change) -> Result<Option<Self>, VolumeError> {
        if let Ok(header) = LuksHeader::read(disk) {
            return Ok(Some(Self {
                volume: plain_name(&header.uuid()),
                kind: header.format().name(),
                bytes: in_use(disk, &header)?,
                header: Some(header),
            }));
        }
        if change.otherwise == Otherwise::Nothing {
            return Ok(None);
        }
        // Bytes that the disk cannot read may be anything.
        let content = match signature::content(disk) {
            Err(error) if error.is_of_place() => None,
            content => Some(content?),
        };
        let is_blank = content.as_ref().is_some_and(Content::is_blank);
        let is_known = content.is_some_and(|content| !content.found.is_empty());
        let (kind, bytes) = match change.otherwise {
            Otherwise::Ends if !is_blank && !is_known => (ENDS, ends(disk)?),
            Otherwise::Start if !is_blank => {
                let mut bytes = Vec::new();
                read(disk, ByteRange::new(0, START), &mut bytes)?;
                (START_ONLY, bytes)
            }
            _ => return Ok(None),
        };
        Ok(Some(Self {
            volume: "unknown".to_owned(),
            kind,
            bytes,
            header: None,
        }))
    }

    /// Whether a backup of the same place and kind is of the same volume; another volume may have
    /// taken its place. A volume without a UUID is recognised by the noise behind its header, which
    /// no command changes.
    fn follows(&self, stored: &Stored) -> bool {
        let beside = |bytes: &[u8]| bytes.get(BESIDE_HEADER).map(<[u8]>::to_vec);
        let before = || std::fs::read(&stored.path).ok();
        let has_uuid = self.header.is_some() && self.volume != UNNAMED;
        has_uuid || before().is_some_and(|bytes| beside(&bytes) == beside(&self.bytes))
    }

    /// Whether a backup is of a header that was replaced by one with another volume key. It may be
    /// the only header left by which the data can be read.
    fn is_replaced(&self, stored: &Stored) -> bool {
        let header = self.header.as_ref().filter(|_| stored.command == "restore");
        header.is_some_and(|header| stored.is_of_other_data_than(header))
    }

    /// Writes it into `folder`, unless it is there; the file's path, and the older backups that
    /// are more than enough.
    fn store(
        &self,
        folder: &Path,
        place: &Path,
        command: &str,
    ) -> io::Result<(PathBuf, Vec<PathBuf>)> {
        make(folder)?;
        let known = stored(folder)?;
        let mark = mark(place);
        // A copy of the image may have the same header, and its backups go with its own changes.
        let of_volume = |stored: &&Stored| stored.volume == self.volume && stored.mark == mark;
        // One that is about to be replaced is kept by that name, for which it is spared.
        let spared = |stored: &&Stored| command != "restore" || stored.command == "restore";
        for stored in known.iter().filter(of_volume).filter(spared) {
            if std::fs::read(&stored.path).is_ok_and(|bytes| bytes == self.bytes) {
                return Ok((stored.path.clone(), Vec::new()));
            }
        }
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%6fZ");
        let name = format!("{}_{mark}_{now}_{command}.{}", self.volume, self.kind);
        let path = folder.join(name);
        block::save(&path, &self.bytes)?;
        let mut own: Vec<_> = known.iter().filter(of_volume).collect();
        own.retain(|stored| self.follows(stored) && !self.is_replaced(stored));
        let surplus = (own.len() + 1).saturating_sub(KEPT);
        let surplus = own[..surplus].iter().map(|stored| stored.path.clone());
        Ok((path, surplus.collect()))
    }
}

/// A short word for a place, which file names can have.
pub fn mark(place: &Path) -> String {
    let digest = Hash::Sha256.digest(&[place.as_os_str().as_encoded_bytes()]);
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A UUID out of a header, with nothing in it that means something in a file name.
pub fn plain_name(uuid: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match uuid.is_empty() || !uuid.chars().all(plain) {
        true => UNNAMED.to_owned(),
        false => uuid.to_owned(),
    }
}

/// The header and its keyslots.
fn in_use(disk: &dyn BlockDevice, header: &LuksHeader) -> Result<Vec<u8>, VolumeError> {
    let length = bounded(header.bytes_with_keyslots().min(disk.geometry().size))?;
    let mut bytes = vec![0; length as usize];
    for area in header.areas_in_use() {
        let mut part = Vec::new();
        read(disk, area, &mut part)?;
        let at = area.offset as usize;
        let end = (at + part.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&part[..end - at]);
    }
    Ok(bytes)
}

/// The headers of TrueCrypt and VeraCrypt and their copies, as a volume has them
/// that holds nothing.
fn ends(disk: &dyn BlockDevice) -> Result<Vec<u8>, VolumeError> {
    let size = disk.geometry().size;
    let length = TCRYPT_HEADERS.min(size);
    let mut bytes = Vec::new();
    read(disk, ByteRange::new(0, length), &mut bytes)?;
    if size >= 2 * TCRYPT_HEADERS {
        read(disk, ByteRange::new(size - length, length), &mut bytes)?;
    }
    Ok(bytes)
}

/// Makes a folder and those above it that are not there, each with its name on the disk.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|parent| *parent != Path::new("")) {
        make(parent)?;
    }
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }?;
    block::sync_name(folder)
}

/// All that is stored in `folder`, the oldest first.
///
/// # Errors
/// Those of reading it.
pub fn stored(folder: &Path) -> io::Result<Vec<Stored>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut stored = Vec::new();
    for entry in entries {
        stored.extend(Stored::at(entry?.path()));
    }
    stored.sort_by(|a, b| a.time.cmp(&b.time));
    Ok(stored)
}

/// The use of a backup for a volume as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is a header of the volume.
    Header,
    /// It is whatever was there in place of a header: other data, or damage.
    Start,
    /// It is of a volume that was there before.
    OtherVolume,
    /// It has an earlier key or place of the data.
    OtherKey,
}

impl Stored {
    /// The backup in the file `path`, if it is named as one.
    fn at(path: PathBuf) -> Option<Self> {
        let (stem, kind) = path.file_name()?.to_str()?.rsplit_once('.')?;
        let mut parts = stem.split('_').map(str::to_owned);
        let stored = Self {
            volume: parts.next()?,
            mark: parts.next()?,
            time: parts.next()?,
            command: parts.next()?,
            kind: kind.to_owned(),
            path: path.clone(),
        };
        parts.next().is_none().then_some(stored)
    }

    /// Whether it is other data than a header, which a command has overwritten. Before a header is
    /// mended, it is more often damage.
    pub fn is_overwritten(&self) -> bool {
        self.kind == START_ONLY && !["restore", "repair"].contains(&self.command.as_str())
    }

    /// Its use for a volume that has `header` now, if that can be read.
    pub fn fit(&self, header: Option<&LuksHeader>) -> Fit {
        match header {
            _ if self.kind == START_ONLY => Fit::Start,
            Some(header) if self.is_of_other_data_than(header) => {
                match self.volume == plain_name(&header.uuid()) {
                    true => Fit::OtherKey,
                    false => Fit::OtherVolume,
                }
            }
            _ => Fit::Header,
        }
    }

    /// Whether `header` in its place would be that of other data, or of another key of theirs.
    fn is_of_other_data_than(&self, header: &LuksHeader) -> bool {
        let file = open_file(&self.path, Use::Read, false);
        let kept = file.ok().and_then(|disk| LuksHeader::read(&disk).ok());
        kept.is_some_and(|kept| kept.of_data() != header.of_data())
    }
}
