//! Every command that opens a volume, and what it needs of it.
//!
//! Of those that write, `create` with a header apart, `drive` and `trim-check` are no
//! columns: the last two write to files of their own alone.

use crate::kit::Format;
use std::sync::LazyLock;
use testkit::CHEAP;

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

pub static LUKS2: LazyLock<Vec<Command>> = LazyLock::new(|| commands(Format::Luks2, OF_LUKS2));
pub static VERACRYPT: LazyLock<Vec<Command>> =
    LazyLock::new(|| commands(Format::Veracrypt, OF_VERACRYPT));

/// A name, what the command does with the volume, a passphrase that opens the volume with
/// its data afterwards, and the arguments, in which words in capitals stand for others.
type Row = (&'static str, Use, Option<&'static str>, &'static str);

macro_rules! rows {
    ($($name:literal: $is:ident, $opens:expr, $arguments:literal;)*) => {
        &[$(($name, Use::$is, $opens, $arguments)),*]
    };
}

/// Nobody sees what a VeraCrypt volume is, so that commands are told.
const OF_BOTH: &[Row] = rows! {
    "create plain": Writes, None, "volume create IMAGE --type plain --yes QUIET";
    "import": Writes, Some("pass"), "volume import IMAGE PASS --input plain QUIET --yes";
    "reencrypt": Writes, Some("pass"), "volume reencrypt IMAGE PASS CHEAP --yes QUIET";
    "resize": Writes, Some("pass"), "volume resize IMAGE PASS --to 4MiB";
    "mount": Writes, Some("pass"), "volume mount IMAGE mounted PASS --as file --daemon";
    "lab run": Writes, Some("pass"), "lab run --disk IMAGE true";
    "export onto it": Writes, None, "volume export other PASS --output IMAGE --yes QUIET";
    "serve": Writes, Some("pass"), "volume serve IMAGE PASS --nbd here.sock --daemon";
    "run": Writes, None, "run plan.toml --at IMAGE --yes QUIET";
    "serve --read-only": Reads, Some("pass"),
        "volume serve IMAGE PASS --read-only --nbd here.sock --daemon";
    "mount --read-only": Reads, Some("pass"),
        "volume mount IMAGE mounted PASS --read-only --as file --daemon";
    "export": Reads, Some("pass"), "volume export IMAGE PASS --output out QUIET";
    "open": Looks, Some("pass"), "volume open IMAGE PASS";
    "recall": Looks, Some("pass"), "volume recall IMAGE PASS QUIET";
};

const OF_LUKS2: &[Row] = rows! {
    "create": Writes, None, "volume create IMAGE PASS CHEAP --offset 2MiB --yes";
    "create luks1": Writes, None, "volume create IMAGE --type luks1 PASS CHEAP --yes";
    "passwd": Writes, Some("third"), "volume passwd IMAGE PASS THIRD CHEAP";
    "key add": Writes, Some("third"), "volume key add IMAGE PASS THIRD CHEAP";
    "key kill": Writes, Some("pass"), "volume key kill IMAGE PASS --key-slot 1";
    "key kill --yes": Writes, Some("pass"), "volume key kill IMAGE --key-slot 1 --yes";
    "header restore": Writes, Some("second"), "volume header restore IMAGE --input saved --yes";
    "header repair": Writes, Some("second"), "volume header repair IMAGE";
    "header set": Writes, Some("second"), "volume header set IMAGE --label name";
    "convert": Writes, Some("second"), "volume convert IMAGE --type luks2";
    "reencrypt --decrypt": Writes, None, "volume reencrypt IMAGE PASS --decrypt --yes QUIET";
    "reencrypt --encrypt": Writes, None, "volume reencrypt IMAGE PASS CHEAP --encrypt --yes QUIET";
    "serve as the header": Writes, None,
        "volume serve other --header IMAGE PASS --nbd here.sock --daemon --yes";
    "info": Looks, Some("pass"), "volume info IMAGE";
    "header backup": Looks, Some("pass"), "volume header backup IMAGE --output again";
    "header restore from it": Looks, Some("pass"),
        "volume header restore other --input IMAGE --yes";
};

const OF_VERACRYPT: &[Row] = rows! {
    "create": Writes, None, "volume create IMAGE PASS --quick --yes";
    "create hidden": Writes, Some("pass"),
        "volume create IMAGE PASS THIRD --tcrypt-hidden 512KiB --outer-pim 1 --yes";
    "create luks2": Writes, None,
        "volume create IMAGE --passphrase-file pass CHEAP --offset 2MiB --yes";
    "passwd": Writes, Some("third"), "volume passwd IMAGE PASS THIRD";
    "header restore": Writes, Some("pass"), "volume header restore IMAGE PASS --input saved --yes";
    "header repair": Writes, Some("pass"), "volume header repair IMAGE PASS --yes";
    "info": Looks, Some("pass"), "volume info IMAGE PASS";
    "header backup": Looks, Some("pass"),
        "volume header backup IMAGE --type veracrypt --output again";
    "header restore from it": Looks, Some("pass"),
        "volume header restore other PASS --input IMAGE --yes";
};

fn commands(format: Format, own: &[Row]) -> Vec<Command> {
    let pass = format!("--passphrase-file pass{}", format.options());
    let written = |arguments: &str| {
        arguments
            .replace("PASS", &pass)
            .replace("THIRD", "--new-passphrase-file third")
            .replace("CHEAP", CHEAP)
            .replace("QUIET", "--no-progress")
    };
    let rows = OF_BOTH.iter().chain(own);
    rows.map(|&(name, is, opens, arguments)| Command {
        name,
        arguments: written(arguments),
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
    })
    .collect()
}
