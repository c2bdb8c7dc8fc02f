//! `cryptmark volume status`: what is served and mounted, and what killed
//! servers have left.

use crate::cli::plain::line;
use crate::cli::{Failure, print};
use ::serve::service::{FILE, Found, Place, Record, list};
use block::plain::word;
use clap::Args;

/// Options of `cryptmark volume status`.
#[derive(Debug, Args)]
pub struct StatusOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &StatusOptions) -> Result<(), Failure> {
    let found = list()?;
    if options.json {
        let list: Result<Vec<serde_json::Value>, _> = found.iter().map(as_json).collect();
        let text = list.and_then(|list| serde_json::to_string_pretty(&list));
        return print(&(text.map_err(Failure::unprintable)? + "\n"));
    }
    if found.is_empty() {
        return print("Nothing is served or mounted: `cryptmark volume mount` and `serve` do.\n");
    }
    print(&found.iter().map(as_text).collect::<String>())
}

fn as_json(found: &Found) -> serde_json::Result<serde_json::Value> {
    let mut value = serde_json::to_value(&found.record)?;
    value["alive"] = found.alive.into();
    Ok(value)
}

fn as_text(Found { record, alive, .. }: &Found) -> String {
    let Record {
        image,
        others,
        access,
        trim,
        pid,
        since,
        ending,
        ..
    } = record;
    let mut text = format!("{}\n", line(image));
    for other in others {
        text += &format!("  and         {}\n", line(other));
    }
    for place in &record.places {
        text += &match place {
            Place::FileSystem(at) | Place::Fuse2fs(at) => {
                format!("  mounted     {}\n", line(at))
            }
            Place::Fuse(at) => format!("  file        {}\n", line(&at.join(FILE))),
            Place::FuseFile(at) => format!("  file        {}\n", line(at)),
            Place::Loop(device) | Place::Disk(device) => {
                format!("  device      {}\n", line(device))
            }
            Place::Nbd(address) => format!("  nbd         {address}\n"),
            Place::Directory(_) | Place::EmptyFile(_) => continue,
        };
    }
    text += &match (alive, ending) {
        (true, _) => format!("  process     {pid}\n"),
        (false, Some(_)) => format!(
            "  process     {pid}, which has ended; forget it with: cryptmark volume umount {}\n",
            word(image)
        ),
        (false, None) => format!(
            "  process     {pid}, which is dead; tidy up with: cryptmark volume umount {}\n",
            word(image)
        ),
    };
    text += &format!("  since       {since}\n  access      {access}\n  trim        {trim}\n");
    if let Some(unconfined) = &record.unconfined {
        text += &format!("  note        {unconfined}\n");
    }
    for error in &record.errors {
        text += &format!("  error       {error}\n");
    }
    if let Some(ending) = ending {
        text += &format!("  in the end  {}\n", ending.what);
    }
    text
}
