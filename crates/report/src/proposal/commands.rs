//! The commands that create and open a set-up.

use super::{Format, Place, Setup};
use serde::Serialize;

/// The name that an opened volume gets.
const NAME: &str = "data";

/// Size of a file that has to be made, as two programs write it.
const NEW_FILE: [&str; 2] = ["10G", "10GiB"];

/// The placeholder for a disk of a machine that is not here.
const ELSEWHERE: &str = "/dev/DISK";

/// How to create and open a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commands {
    /// By cryptsetup, one after the other.
    pub cryptsetup: Vec<String>,
    /// By this program.
    pub cryptmark: Vec<String>,
    /// A line of `/etc/crypttab`.
    pub crypttab: String,
}

impl Commands {
    /// Those of a set-up at a place.
    pub(super) fn of(setup: &Setup, place: &Place) -> Self {
        let path = match place {
            Place::There(path) | Place::New(path) => path.as_str(),
            Place::Elsewhere => ELSEWHERE,
        };
        let quoted = quoted(path);
        let made = matches!(place, Place::New(_));
        let options = options(setup);

        let mut cryptsetup = Vec::new();
        if made {
            cryptsetup.push(format!("truncate --size {} {quoted}", NEW_FILE[0]));
        }
        cryptsetup.push(format!("cryptsetup luksFormat {options} {quoted}"));
        let mut open = String::from("cryptsetup open");
        if setup.allow_discards {
            open.push_str(" --allow-discards");
        }
        for flag in &setup.flags {
            open.push_str(&format!(" --perf-{}", flag.replace('-', "_")));
        }
        // LUKS2 keeps them in its header.
        if setup.format == Format::Luks2 && (setup.allow_discards || !setup.flags.is_empty()) {
            open.push_str(" --persistent");
        }
        cryptsetup.push(format!("{open} {quoted} {NAME}"));

        let size = match made {
            true => format!(" --size {}", NEW_FILE[1]),
            false => String::new(),
        };
        let create = format!("cryptmark volume create {quoted}{size} {options}");

        let mut tab = vec!["luks"];
        if setup.allow_discards {
            tab.push("discard");
        }
        tab.extend(&setup.flags);
        Self {
            cryptsetup,
            cryptmark: vec![create],
            crypttab: format!("{NAME} {} none {}", in_a_table(path), tab.join(",")),
        }
    }
}

/// The options that both programs have.
fn options(setup: &Setup) -> String {
    let mut options = format!(
        "--type {} --cipher {} --key-size {}",
        setup.format.name(),
        setup.cipher,
        setup.key_size
    );
    if setup.format == Format::Luks2 {
        options.push_str(&format!(" --sector-size {}", setup.sector_size));
    }
    options.push_str(&format!(
        " --pbkdf {} --iter-time {}",
        setup.pbkdf, setup.iter_time
    ));
    if let Some(memory) = setup.pbkdf_memory {
        options.push_str(&format!(" --pbkdf-memory {memory}"));
    }
    if let Some(lanes) = setup.pbkdf_parallel {
        options.push_str(&format!(" --pbkdf-parallel {lanes}"));
    }
    options
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,=@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A path for a table, whose fields end at blanks.
fn in_a_table(path: &str) -> String {
    path.replace('\\', "\\134")
        .replace(' ', "\\040")
        .replace('\t', "\\011")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_shell_as_they_are() {
        assert_eq!(quoted("/dev/sda1"), "/dev/sda1");
        assert_eq!(quoted("/my disk"), "'/my disk'");
        assert_eq!(quoted("it's;$x"), "'it'\\''s;$x'");
        assert_eq!(in_a_table("/my disk\\x"), "/my\\040disk\\134x");
    }
}
