//! Every command that opens a volume, and what it needs of it.
//!
//! Of those that write, `create` with a header apart, `drive` and `trim-check` are no
//! columns: the last two write to files of their own alone.

use crate::kit::{CHEAP, Format};
use std::sync::LazyLock;

/// What a command does with the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It writes.
    Writes,
    /// It reads, and nobody may write meanwhile.
    Reads,
    /// It reads what others may change.
    Looks,
}

/// A command of the matrix.
pub struct Command {
    pub name: &'static str,
    /// Of `cryptmark`; `IMAGE` is the volume.
    pub arguments: String,
    pub is: Use,
    /// A passphrase that opens the volume with its data afterwards, if it is to be there.
    pub opens: Option<&'static str>,
    /// Whether it goes on in the background, and where.
    pub serves: Option<&'static str>,
    /// Whether another file, or less of it, is there afterwards.
    pub replaces: bool,
    /// Whether the header can be in a file of its own.
    pub takes_header: bool,
}

/// Those that take a file, and no volume, or make both header and data.
const OTHERWISE: &[&str] = &[
    "create plain",
    "export onto it",
    "header restore from it",
    "lab run",
    "reencrypt --decrypt",
    "reencrypt --encrypt",
    "run",
    "serve as the header",
];

pub static LUKS2: LazyLock<Vec<Command>> = LazyLock::new(luks2);
pub static VERACRYPT: LazyLock<Vec<Command>> = LazyLock::new(veracrypt);

fn luks2() -> Vec<Command> {
    use Use::{Looks, Reads, Writes};
    let pass = "--passphrase-file pass";
    let third = "--new-passphrase-file third";
    let quiet = "--no-progress";
    let rows = [
        (
            "create",
            format!("volume create IMAGE {pass} {CHEAP} --offset 2MiB --yes"),
            Writes,
            None,
        ),
        (
            "create luks1",
            format!("volume create IMAGE --type luks1 {pass} {CHEAP} --yes"),
            Writes,
            None,
        ),
        (
            "create plain",
            "volume create IMAGE --type plain --yes --no-progress".to_owned(),
            Writes,
            None,
        ),
        (
            "import",
            format!("volume import IMAGE {pass} --input plain {quiet} --yes"),
            Writes,
            Some("pass"),
        ),
        (
            "passwd",
            format!("volume passwd IMAGE {pass} {third} {CHEAP}"),
            Writes,
            Some("third"),
        ),
        (
            "key add",
            format!("volume key add IMAGE {pass} {third} {CHEAP}"),
            Writes,
            Some("third"),
        ),
        (
            "key kill",
            format!("volume key kill IMAGE {pass} --key-slot 1"),
            Writes,
            Some("pass"),
        ),
        (
            "key kill --yes",
            "volume key kill IMAGE --key-slot 1 --yes".to_owned(),
            Writes,
            Some("pass"),
        ),
        (
            "header restore",
            "volume header restore IMAGE --input saved --yes".to_owned(),
            Writes,
            Some("second"),
        ),
        (
            "header repair",
            "volume header repair IMAGE".to_owned(),
            Writes,
            Some("second"),
        ),
        (
            "header set",
            "volume header set IMAGE --label name".to_owned(),
            Writes,
            Some("second"),
        ),
        (
            "convert",
            "volume convert IMAGE --type luks2".to_owned(),
            Writes,
            Some("second"),
        ),
        (
            "reencrypt",
            format!("volume reencrypt IMAGE {pass} {CHEAP} --yes {quiet}"),
            Writes,
            Some("pass"),
        ),
        (
            "reencrypt --decrypt",
            format!("volume reencrypt IMAGE {pass} --decrypt --yes {quiet}"),
            Writes,
            None,
        ),
        (
            "reencrypt --encrypt",
            format!("volume reencrypt IMAGE {pass} {CHEAP} --encrypt --yes {quiet}"),
            Writes,
            None,
        ),
        (
            "resize",
            format!("volume resize IMAGE {pass} --to 4MiB"),
            Writes,
            Some("pass"),
        ),
        (
            "mount",
            format!("volume mount IMAGE mounted {pass} --as file --daemon"),
            Writes,
            Some("pass"),
        ),
        (
            "lab run",
            "lab run --disk IMAGE true".to_owned(),
            Writes,
            Some("pass"),
        ),
        (
            "export onto it",
            format!("volume export other {pass} --output IMAGE --yes {quiet}"),
            Writes,
            None,
        ),
        (
            "serve",
            format!("volume serve IMAGE {pass} --nbd here.sock --daemon"),
            Writes,
            Some("pass"),
        ),
        (
            "serve as the header",
            format!("volume serve other --header IMAGE {pass} --nbd here.sock --daemon"),
            Writes,
            None,
        ),
        (
            "run",
            "run plan.toml --at IMAGE --yes --no-progress".to_owned(),
            Writes,
            None,
        ),
        (
            "serve --read-only",
            format!("volume serve IMAGE {pass} --read-only --nbd here.sock --daemon"),
            Reads,
            Some("pass"),
        ),
        (
            "mount --read-only",
            format!("volume mount IMAGE mounted {pass} --read-only --as file --daemon"),
            Reads,
            Some("pass"),
        ),
        (
            "export",
            format!("volume export IMAGE {pass} --output out {quiet}"),
            Reads,
            Some("pass"),
        ),
        ("info", "volume info IMAGE".to_owned(), Looks, Some("pass")),
        (
            "open",
            format!("volume open IMAGE {pass}"),
            Looks,
            Some("pass"),
        ),
        (
            "header backup",
            "volume header backup IMAGE --output again".to_owned(),
            Looks,
            Some("pass"),
        ),
        (
            "header restore from it",
            "volume header restore other --input IMAGE --yes".to_owned(),
            Looks,
            Some("pass"),
        ),
    ];
    rows.map(command).into()
}

/// Nobody sees what such a volume is, so that commands are told.
fn veracrypt() -> Vec<Command> {
    use Use::{Looks, Reads, Writes};
    let kind = Format::Veracrypt.options();
    let pass = format!("--passphrase-file pass{kind}");
    let third = "--new-passphrase-file third";
    let quiet = "--no-progress";
    let rows = [
        (
            "create",
            format!("volume create IMAGE {pass} --quick --yes"),
            Writes,
            None,
        ),
        (
            "create hidden",
            format!(
                "volume create IMAGE {pass} {third} --tcrypt-hidden 512KiB --outer-pim 1 --yes"
            ),
            Writes,
            Some("pass"),
        ),
        (
            "create luks2",
            format!("volume create IMAGE --passphrase-file pass {CHEAP} --offset 2MiB --yes"),
            Writes,
            None,
        ),
        (
            "create plain",
            "volume create IMAGE --type plain --yes --no-progress".to_owned(),
            Writes,
            None,
        ),
        (
            "import",
            format!("volume import IMAGE {pass} --input plain {quiet} --yes"),
            Writes,
            Some("pass"),
        ),
        (
            "passwd",
            format!("volume passwd IMAGE {pass} {third}"),
            Writes,
            Some("third"),
        ),
        (
            "header restore",
            format!("volume header restore IMAGE {pass} --input saved --yes"),
            Writes,
            Some("pass"),
        ),
        (
            "header repair",
            format!("volume header repair IMAGE {pass} --yes"),
            Writes,
            Some("pass"),
        ),
        (
            "reencrypt",
            format!("volume reencrypt IMAGE {pass} {CHEAP} --yes {quiet}"),
            Writes,
            Some("pass"),
        ),
        (
            "resize",
            format!("volume resize IMAGE {pass} --to 4MiB"),
            Writes,
            Some("pass"),
        ),
        (
            "mount",
            format!("volume mount IMAGE mounted {pass} --as file --daemon"),
            Writes,
            Some("pass"),
        ),
        (
            "lab run",
            "lab run --disk IMAGE true".to_owned(),
            Writes,
            Some("pass"),
        ),
        (
            "export onto it",
            format!("volume export other {pass} --output IMAGE --yes {quiet}"),
            Writes,
            None,
        ),
        (
            "serve",
            format!("volume serve IMAGE {pass} --nbd here.sock --daemon"),
            Writes,
            Some("pass"),
        ),
        (
            "run",
            "run plan.toml --at IMAGE --yes --no-progress".to_owned(),
            Writes,
            None,
        ),
        (
            "serve --read-only",
            format!("volume serve IMAGE {pass} --read-only --nbd here.sock --daemon"),
            Reads,
            Some("pass"),
        ),
        (
            "mount --read-only",
            format!("volume mount IMAGE mounted {pass} --read-only --as file --daemon"),
            Reads,
            Some("pass"),
        ),
        (
            "export",
            format!("volume export IMAGE {pass} --output out {quiet}"),
            Reads,
            Some("pass"),
        ),
        (
            "info",
            format!("volume info IMAGE {pass}"),
            Looks,
            Some("pass"),
        ),
        (
            "open",
            format!("volume open IMAGE {pass}"),
            Looks,
            Some("pass"),
        ),
        (
            "header backup",
            "volume header backup IMAGE --type veracrypt --output again".to_owned(),
            Looks,
            Some("pass"),
        ),
        (
            "header restore from it",
            format!("volume header restore other {pass} --input IMAGE --yes"),
            Looks,
            Some("pass"),
        ),
    ];
    rows.map(command).into()
}

fn command(
    (name, arguments, is, opens): (&'static str, String, Use, Option<&'static str>),
) -> Command {
    Command {
        name,
        arguments,
        is,
        opens,
        serves: match name.split_once(' ').map_or(name, |(first, _)| first) {
            "serve" => Some("here.sock"),
            "mount" => Some("mounted"),
            _ => None,
        },
        replaces: matches!(
            name,
            "export onto it" | "reencrypt --decrypt" | "reencrypt --encrypt" | "resize"
        ),
        takes_header: !OTHERWISE.contains(&name),
    }
}
