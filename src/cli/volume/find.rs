//! `cryptmark volume find`: what a disk or its image is divided into, and what each part holds.

use super::disk::Names;
use super::recognise;
use crate::cli::{Failure, print};
use block::BlockDevice;
use block::plain::word;
use block::signature;
use bytesize::ByteSize;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use volume::judge::Use;
use volume::parts::{Obstacle, Part, Parts};
use volume::{Format, VolumeError, info};

/// Options of `cryptmark volume find`.
#[derive(Debug, Args)]
pub struct FindOptions {
    /// The disk or its image: a file, a block device, or nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT
    image: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The whole, or a part of it.
struct Seen<'a> {
    part: Option<&'a Part>,
    size: u64,
    /// The kind of volume that it is.
    format: Option<Format>,
    /// Its content, in words.
    holds: String,
}

impl<'a> Seen<'a> {
    fn of(device: &dyn BlockDevice, part: Option<&'a Part>) -> Result<Self, Failure> {
        let content = signature::content(device).map_err(VolumeError::Block)?;
        // A damaged header is a volume's, too.
        let format = Format::detect(device).unwrap_or_default();
        let holds = content.in_words(|found| {
            let known = format.filter(|_| found.name == signature::LUKS)?;
            let uuid = found.uuid.as_ref();
            let uuid = uuid.map_or_else(String::new, |uuid| format!(" (UUID {uuid})"));
            Some(format!("a {} volume{uuid}", known.title()))
        });
        Ok(Self {
            part,
            size: device.geometry().size,
            format,
            holds,
        })
    }

    /// A part that cannot be read.
    fn unread(part: &'a Part, reason: &str) -> Self {
        Self {
            part: Some(part),
            size: part.size(),
            format: None,
            holds: format!("unknown: {reason}"),
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let mut value = json!({
            "name": null,
            "size": self.size,
            "holds": self.holds,
            "type": self.format.map(Format::name),
        });
        if let (Some(part), Some(members)) = (self.part, value.as_object_mut()) {
            members.extend(info::part(part));
        }
        value
    }
}

/// Runs the command.
pub fn run(options: &FindOptions, names: &Names) -> Result<(), Failure> {
    let image = &options.image;
    let disk = names.open(image, Use::Read)?.device;
    recognise::check_unwrapped(image, &*disk)?;
    #[cfg(target_os = "linux")]
    crate::cli::confine::Confinement::around([image.as_path()], Vec::new())?.enter()?;
    let whole = Seen::of(&*disk, None)?;
    let parts = Parts::find(&*disk)?;
    let mut seen = Vec::new();
    for part in &parts.all {
        seen.push(match &part.obstacle {
            Some(Obstacle::Unusable(reason)) => Seen::unread(part, reason),
            _ => Seen::of(&*part.open(&*disk).map_err(VolumeError::Block)?, Some(part))?,
        });
    }
    for remark in &parts.remarks {
        eprintln!("warning: {remark}");
    }
    if options.json {
        let all: Vec<_> = std::iter::once(&whole)
            .chain(&seen)
            .map(Seen::as_json)
            .collect();
        let text = serde_json::to_string_pretty(&all).map_err(Failure::unprintable)?;
        return print(&(text + "\n"));
    }
    print(&(described(image, &whole) + &table(image, &seen)))
}

/// The whole, in a sentence.
fn described(image: &Path, whole: &Seen) -> String {
    let size = ByteSize(whole.size).display().iec();
    format!("{}: {size}, holds {}\n", image.display(), whole.holds)
}

/// The parts, and how one of them is opened.
fn table(image: &Path, seen: &[Seen]) -> String {
    let parts = || seen.iter().filter_map(|seen| Some((seen, seen.part?)));
    if seen.is_empty() {
        return "It is not divided into parts.\n".to_owned();
    }
    let title = |part: &Part| match &part.label {
        Some(label) if !part.name.ends_with(label.as_str()) => label.escape_debug().to_string(),
        _ => String::new(),
    };
    let wide = |text: &dyn Fn(&Part) -> String, least: usize| {
        let widths = parts().map(|(_, part)| text(part).chars().count());
        widths.max().unwrap_or(0).max(least)
    };
    let (name, label) = (wide(&|part| part.name.clone(), 4), wide(&title, 5));
    let mut text = format!(
        "\n  {:name$}  {:label$}  {:>10}  holds\n",
        "part", "label", "size"
    );
    for (seen, part) in parts() {
        let size = match seen.size {
            0 => "unknown".to_owned(),
            size => ByteSize(size).display().iec().to_string(),
        };
        let only = match &part.obstacle {
            Some(Obstacle::ReadOnly(reason)) => format!(" (can be read only: {reason})"),
            _ => String::new(),
        };
        text += &format!(
            "  {:name$}  {:label$}  {size:>10}  {}{only}\n",
            part.name,
            title(part),
            seen.holds
        );
    }
    let opened = parts().find(|(seen, _)| seen.format.is_some());
    if let Some((_, part)) = opened {
        text += &format!(
            "\nTo open a part: cryptmark volume open {} --partition {}\n",
            word(image),
            word(Path::new(&part.name))
        );
    }
    text
}
