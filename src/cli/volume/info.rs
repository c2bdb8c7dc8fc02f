//! `cryptmark volume info`: what a header says.

use super::arguments::VolumeArguments;
use super::disk::Names;
use super::open::searching;
use super::secrets::SecretArguments;
use crate::cli::{Failure, limits, print};
use clap::Args;
use serde_json::Value;
use volume::info;
use volume::judge::Use;

/// Options of `cryptmark volume info`.
#[derive(Debug, Args)]
pub struct InfoOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// What opens a TrueCrypt or VeraCrypt volume, whose header tells nothing without
    #[command(flatten)]
    secret: SecretArguments,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &InfoOptions, names: &Names) -> Result<(), Failure> {
    let volume = options.volume.with(names);
    let devices = volume.devices(Use::Read)?;
    let format = volume.format(devices.header())?;
    let mut info = match volume.family() {
        Some(family) => {
            volume.refuse_foreign_options(format)?;
            let opening = volume.tcrypt(family)?;
            let secret = options.secret.secret(format, volume.image())?;
            let limits = limits()?;
            let unlocked =
                searching(|watch| opening.unlock(devices.data(), &secret, &limits, watch))??;
            info::tcrypt(&opening, &unlocked)?
        }
        None => info::header(format, devices.header())?,
    };
    if let Some(writers) = volume.writers() {
        info["in_use"] = format!("for writing, {writers}").into();
    }
    if options.json {
        let text = serde_json::to_string_pretty(&info).map_err(Failure::unprintable)?;
        return print(&(text + "\n"));
    }
    let mut text = String::new();
    describe(&info, 0, &mut text);
    print(&text)
}

/// Indented lines of names and values.
fn describe(value: &Value, depth: usize, text: &mut String) {
    let Value::Object(members) = value else {
        return;
    };
    let indent = "  ".repeat(depth);
    for (name, value) in members {
        let name = name.replace('_', " ");
        match value {
            Value::Object(members) if members.is_empty() => {}
            Value::Object(_) => {
                text.push_str(&format!("{indent}{name}\n"));
                describe(value, depth + 1, text);
            }
            Value::Array(values) if values.is_empty() => {}
            Value::Array(values) => {
                let values: Vec<_> = values.iter().map(plain).collect();
                text.push_str(&format!("{indent}{name:<18}{}\n", values.join(", ")));
            }
            value if plain(value).is_empty() => {}
            value => text.push_str(&format!("{indent}{name:<18}{}\n", plain(value))),
        }
    }
}

/// A value without quotes, and with nothing in it that a terminal would obey.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text
            .chars()
            .map(|c| if c.is_control() { '·' } else { c })
            .collect(),
        other => other.to_string(),
    }
}
