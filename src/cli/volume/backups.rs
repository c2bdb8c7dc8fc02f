//! `cryptmark volume header backups`: what is kept of a volume, in the user's state folder.

use super::arguments::Volume;
use crate::cli::{Failure, print};
use block::plain::word;
use etcetera::BaseStrategy;
use jiff::civil::DateTime;
use std::path::PathBuf;
use volume::LuksHeader;
use volume::judge::Use;
use volume::operate::backups::{
    Backups, Change, ENDS, Fit, START_ONLY, Stored, mark, plain_name, stored,
};

/// The backups of a command that makes this change.
pub fn before(change: Option<Change>) -> Backups {
    Backups::before(change.map(|change| (change, place())))
}

/// A line that says what still opens the header that a command has kept; nothing if it has kept
/// none.
pub fn reminder(backups: &Backups, what: &str) -> String {
    backups.kept().map_or_else(String::new, |path| {
        let path = path.display();
        format!("{what} still opens the backup of the header in {path}\n")
    })
}

/// Where backups are, or would be; nothing if the user has no home.
pub fn place() -> Option<PathBuf> {
    let base = etcetera::base_strategy::Xdg::new().ok()?;
    let place = base.state_dir()?.join("cryptmark/headers");
    // Another folder would have it at the next command.
    Some(place).filter(|place| place.is_absolute())
}

/// When a backup was made, for people.
fn shown_time(time: &str) -> String {
    let seconds = time.get(..15).unwrap_or(time);
    let parsed = DateTime::strptime("%Y%m%dT%H%M%S", seconds);
    parsed.map_or_else(
        |_| time.to_owned(),
        |time| time.strftime("%F %T UTC").to_string(),
    )
}

/// Lists the backups of a volume, the newest last, and says how one comes back.
pub fn list(volume: &Volume) -> Result<(), Failure> {
    let place_of_header = volume.header_path();
    let place_of_header = place_of_header.as_deref().unwrap_or(volume.image());
    let of_place = mark(&volume.names.full_name(place_of_header));
    // A header that is lost does not tell its UUID; its place is the same.
    let disk = volume.names.open(place_of_header, Use::Read).ok();
    let header = disk
        .as_ref()
        .and_then(|disk| LuksHeader::read(&*disk.device).ok());
    let uuid = header.as_ref().map(|header| plain_name(&header.uuid()));
    let all = match &place() {
        Some(folder) => stored(folder).map_err(|error| {
            Failure::new(
                1,
                format!("cannot read {}: {error}", folder.display()),
                "Check the folder and its permissions.",
            )
        })?,
        None => Vec::new(),
    };
    let is_own = |stored: &Stored| stored.mark == of_place || Some(&stored.volume) == uuid.as_ref();
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_own);
    let fit = |stored: &Stored| stored.fit(header.as_ref());
    let mut text = String::new();
    for stored in &own {
        text += &format!(
            "{}  before {:<15} {:<9} {}{}\n",
            shown_time(&stored.time),
            stored.command,
            stored.kind,
            stored.path.display(),
            match fit(stored) {
                Fit::Header => "",
                Fit::Start => " (no header)",
                Fit::OtherVolume => " (another volume)",
                Fit::OtherKey => " (another key)",
            },
        );
    }
    // Another volume, or other data, may have been overwritten by mistake.
    let last = |is: &dyn Fn(&Stored) -> bool| own.iter().rfind(|stored| is(stored));
    let newest = last(&|stored| fit(stored) == Fit::Header)
        .or_else(|| last(&|stored| fit(stored) == Fit::OtherVolume || stored.is_overwritten()))
        .or_else(|| last(&|stored| fit(stored) == Fit::Start));
    if newest.is_none_or(|newest| fit(newest) != Fit::Header) && uuid.is_none() {
        // A volume that was moved tells its UUID no more if its header is lost.
        for stored in &others {
            let time = shown_time(&stored.time);
            text += &format!(
                "{time}  perhaps of it, if it was moved: {}\n",
                stored.path.display()
            );
        }
    }
    let Some(newest) = newest else {
        text += "no backup is known to be a header of this volume as it is now\n";
        return print(&text);
    };
    let (image, file) = (word(volume.image()), word(&newest.path));
    let detached = match volume.header_path() {
        Some(path) => format!(" --header {}", word(&path)),
        None => String::new(),
    };
    let mut what = match fit(newest) {
        Fit::OtherVolume => {
            "This restores the volume that was there before, and destroys that of now:"
        }
        _ => "This restores the last one, with the passphrases of that time:",
    }
    .to_owned();
    let restore = match newest.kind.as_str() {
        START_ONLY => {
            // The backup may reach into the data, which have changed since.
            let data = header.as_ref().map_or(0, LuksHeader::data_offset);
            let length = std::fs::metadata(&newest.path).map_or(0, |found| found.len());
            let bytes = if data == 0 { length } else { data.min(length) };
            let lost = match &header {
                Some(header) => {
                    format!("and destroys the {} volume there", header.format().title())
                }
                None => "whatever they hold now".to_owned(),
            };
            what = format!("This restores the last one over the first {bytes} bytes, {lost}:");
            let place = word(place_of_header);
            // Of a part, where it is on the disk.
            let part = disk.and_then(|disk| Some(disk.whole?.1));
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
