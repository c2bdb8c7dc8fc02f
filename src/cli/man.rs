//! `cryptmark man`: pages made from the arguments' own definitions, with what
//! these do not say.

use super::report::put;
use super::whole::Kind;
use super::{Arguments, Failure, print};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use std::io;
use std::path::PathBuf;

/// Options of `cryptmark man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// Write a page for every command into this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Done."),
    ("1", "The measurement or operation failed."),
    ("2", "Bad usage or bad input."),
    ("3", "Wrong passphrase, or no key slot fits."),
    (
        "4",
        "Refused to protect data: a device in use, or an existing signature without --yes.",
    ),
    (
        "5",
        "The threshold of --fail-if-slower or of a comparison was exceeded.",
    ),
    (
        "130",
        "Interrupted. The measurements so far are stored and marked as partial.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("CRYPTMARK_STORE", "Where runs are kept, as with --store."),
    (
        "NO_COLOR",
        "If it is set to any value, the terminal shows no colours.",
    ),
    (
        "JAVA_HOME",
        "The Java whose ciphers are measured, instead of the one on the path.",
    ),
    (
        "XDG_DATA_HOME",
        "The user's data directory, instead of ~/.local/share.",
    ),
    (
        "XDG_STATE_HOME",
        "The user's state directory, instead of ~/.local/state. It keeps the headers of LUKS volumes as they were before a change.",
    ),
];

const FILES: &[(&str, &str)] = &[
    (
        "~/.local/share/cryptmark/runs",
        "The stored runs, one file each.",
    ),
    (
        "~/.local/state/cryptmark/headers",
        "Headers of LUKS volumes as they were before a command changed them. Keep them secret.",
    ),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "cryptmark run --at /data",
        "The cost of AES, Serpent and Twofish on the disk of /data.",
    ),
    (
        "cryptmark advise --at /data",
        "The set-up to choose there, why, and the commands that create it.",
    ),
    (
        "cryptmark report latest -o page.html",
        "The last run as a page to send on.",
    ),
    (
        "cryptmark volume export old.tc --type tcrypt -o plain.img",
        "The plaintext of a TrueCrypt volume.",
    ),
];

/// Prints the program's page, or writes those of all commands.
pub fn run(options: &ManOptions) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::new(
            1,
            format!("cannot write the manual pages: {error}"),
            "Give --out-dir a directory that exists and can be written.",
        )
    };
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    match &options.out_dir {
        Some(directory) => {
            let pages = pages(&command, &[]).map_err(failed)?;
            pages.iter().try_for_each(|(name, page)| {
                let text = String::from_utf8_lossy(page);
                put(&directory.join(name), Kind::Manual, &text)
            })
        }
        None => {
            let page = page(&command, &[]).map_err(failed)?;
            print(&String::from_utf8_lossy(&page))
        }
    }
}

/// File names and pages of `command`, which stands below `parents`, and of all
/// below it.
fn pages(command: &Command, parents: &[&str]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let name = name(command);
    let mut all = vec![(format!("{name}.1"), page(command, parents)?)];
    let parents = [parents, &[name]].concat();
    for below in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        all.extend(pages(below, &parents)?);
    }
    Ok(all)
}

/// A built command's full name, with hyphens.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn page(command: &Command, parents: &[&str]) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone())
        .date(env!("CRYPTMARK_DAY"))
        .source(concat!("cryptmark ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut more = Roff::new();
    if parents.is_empty() {
        list(&mut more, "EXIT STATUS", EXIT_STATUS);
        list(&mut more, "ENVIRONMENT", ENVIRONMENT);
        list(&mut more, "FILES", FILES);
        list(&mut more, "EXAMPLES", EXAMPLES);
        see_also(&mut more, &[("cryptsetup", 8), ("fio", 1)]);
    } else {
        let parents: Vec<_> = parents.iter().rev().map(|name| (*name, 1)).collect();
        see_also(&mut more, &parents);
    }
    more.to_writer(&mut page)?;
    Ok(page)
}

/// A section of terms, each with a sentence.
fn list(page: &mut Roff, title: &str, entries: &[(&str, &str)]) {
    page.control("SH", [title]);
    for (term, sentence) in entries {
        page.control("TP", []);
        page.text([bold(*term)]);
        page.text([roman(*sentence)]);
    }
}

/// Names and sections of other pages.
fn see_also(page: &mut Roff, others: &[(&str, u8)]) {
    page.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for (index, (name, section)) in others.iter().enumerate() {
        if index > 0 {
            line.push(roman(", "));
        }
        line.extend([italic(*name), roman(format!("({section})"))]);
    }
    page.text(line);
}
