//! `cryptmark volume header backups`: what is kept of a volume.

use super::{mark, plain_name};
use crate::cli::plain::word;
use crate::cli::volume::arguments::Volume;
use crate::cli::volume::disk::{Disk, Names};
use crate::cli::{Failure, print};
use etcetera::BaseStrategy;
use std::io;
use std::path::{Path, PathBuf};
use volume::judge::Use;
use volume::{Loss, LuksHeader};

/// The kind of a backup of both ends of a device, perhaps VeraCrypt's headers.
pub const ENDS: &str = "ends";

/// The kind of a backup of the start of a device without a header.
pub const START: &str = "start";

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
    time: String,
    kind: String,
}

/// Where backups are, or would be; nothing if the user has no home.
pub fn place() -> Option<PathBuf> {
    let base = etcetera::base_strategy::Xdg::new().ok()?;
    let place = base.state_dir()?.join("cryptmark/headers");
    // Another folder would have it at the next command.
    Some(place).filter(|place| place.is_absolute())
}

/// All that is stored in `folder`, the oldest first.
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

    /// Whether `header` in its place would be that of other data, or of another key of theirs.
    pub fn is_of_other_data_than(&self, header: &LuksHeader) -> bool {
        let disk = Names::default().open(&self.path, Use::Read);
        let kept = disk.ok().and_then(|disk| LuksHeader::read(&disk).ok());
        let differs = |loss: &Loss| matches!(loss, Loss::Key | Loss::Data | Loss::Reencryption);
        kept.is_some_and(|kept| kept.losses(header).iter().any(differs))
    }

    /// When it was made, for people.
    fn shown_time(&self) -> String {
        let digits = |from: usize, to: usize| self.time.get(from..to).unwrap_or_default();
        format!(
            "{}-{}-{} {}:{}:{} UTC",
            digits(0, 4),
            digits(4, 6),
            digits(6, 8),
            digits(9, 11),
            digits(11, 13),
            digits(13, 15)
        )
    }
}

/// Lists the backups of a volume, the newest last, and says how one comes back.
pub fn run(volume: &Volume) -> Result<(), Failure> {
    let place_of_header = volume.header_path();
    let place_of_header = place_of_header.as_deref().unwrap_or(volume.image());
    let of_place = mark(&volume.names.full_name(place_of_header));
    // A header that is lost does not tell its UUID; its place is the same.
    let disk = volume.names.open(place_of_header, Use::Read).ok();
    let header = disk.as_ref().and_then(|disk| LuksHeader::read(disk).ok());
    let uuid = header.as_ref().map(|header| plain_name(&header.uuid()));
    let folder = place();
    let all = match &folder {
        Some(folder) => stored(folder).map_err(|error| {
            Failure::new(
                1,
                format!("cannot read {}: {error}", folder.display()),
                "Check the folder and its permissions.",
            )
        })?,
        None => Vec::new(),
    };
    let own: Vec<_> = all
        .into_iter()
        .filter(|stored| stored.mark == of_place || Some(&stored.volume) == uuid.as_ref())
        .collect();
    if own.is_empty() {
        return print("no backup is kept of the header of this volume\n");
    }
    let mut text = String::new();
    let mut newest = None;
    for stored in &own {
        // Another volume was there before, and its data may be there still.
        let is_own = Some(&stored.volume) == uuid.as_ref();
        let is_other = header
            .as_ref()
            .is_some_and(|header| is_own && stored.is_of_other_data_than(header));
        if !is_other {
            newest = Some(stored);
        }
        text += &format!(
            "{}  before {:<15} {:<9} {}{}\n",
            stored.shown_time(),
            stored.command,
            stored.kind,
            stored.path.display(),
            if is_other { " (another key)" } else { "" },
        );
    }
    let Some(newest) = newest else {
        text += "\nNone of them opens the data of now, which have another key or place.\n";
        return print(&text);
    };
    let (image, file) = (word(volume.image()), word(&newest.path));
    let detached = match volume.header_path() {
        Some(path) => format!(" --header {}", word(&path)),
        None => String::new(),
    };
    let mut what = "This restores the last one, with the passphrases of that time:".to_owned();
    let restore = match newest.kind.as_str() {
        START => {
            // The backup may reach into the data, which have changed since.
            let data = header.map_or(0, |header| header.data_offset());
            let length = std::fs::metadata(&newest.path).map_or(0, |found| found.len());
            let bytes = if data == 0 { length } else { data.min(length) };
            what = format!(
                "This restores the last one over the first {bytes} bytes, whatever they hold now:"
            );
            let place = word(place_of_header);
            // Of a part, where it is on the disk.
            let part = disk
                .as_ref()
                .and_then(Disk::on_disk)
                .map(|(_, start)| start);
            let seek = part.map_or_else(String::new, |part| {
                format!(" oflag=seek_bytes seek={}", part.offset)
            });
            let bytes = part.map_or(bytes, |part| part.length.min(bytes));
            format!("dd if={file} of={place}{seek} bs={bytes} count=1 iflag=fullblock conv=notrunc")
        }
        kind => {
            let kind = match kind {
                "tcrypt" => " --type tcrypt",
                "veracrypt" | ENDS => " --type veracrypt",
                _ => "",
            };
            let part = match volume.names.part(volume.image()) {
                Some(name) => format!(" --partition '{}'", name.replace('\'', "'\\''")),
                None => String::new(),
            };
            format!("cryptmark volume header restore {image}{part}{detached}{kind} --input {file}")
        }
    };
    text += &format!("\n{what}\n  {restore}\n");
    print(&text)
}
