//! The commands of the book and of the README are commands of this program.

#[path = "../../tests/book/page.rs"]
#[allow(dead_code)] // The links are followed in tests/book.
mod page;

use super::Arguments;
use clap::Parser;
use clap::error::ErrorKind;
use page::{calls, pages};

/// Checks the options, their values and their combinations, even in commands that take too long or
/// need too much for a test.
#[test]
fn every_command_in_a_block_is_one() {
    let mut count = 0;
    for page in pages() {
        for step in page.blocks().into_iter().flat_map(|block| block.steps) {
            let built = step.command.replace("cargo run --release --", "cryptmark");
            for call in calls(&built, "cryptmark") {
                count += 1;
                let parsed = Arguments::try_parse_from(&call);
                let fault = parsed.err().filter(clap::Error::use_stderr);
                let place = page.place(step.line);
                assert!(fault.is_none(), "{place}: {}", fault.unwrap());
            }
        }
    }
    assert!(count > 100, "{count} commands");
}

/// Within a sentence a command may stand for many: `PLAN`, or `…`.
#[test]
fn every_command_in_a_sentence_is_one() {
    let mut count = 0;
    for page in pages() {
        for (line, span) in page.code_spans() {
            let placeholder = |word: &str| {
                let bare = word.trim_matches(|sign: char| !sign.is_alphanumeric());
                !bare.is_empty()
                    && bare
                        .chars()
                        .all(|sign| sign.is_uppercase() || "-_.".contains(sign))
            };
            if span.contains('…') || span.split([' ', '.', ':']).any(placeholder) {
                continue;
            }
            for call in calls(&span, "cryptmark") {
                count += 1;
                let fault = Arguments::try_parse_from(&call).err().filter(|error| {
                    // A command is named there that goes on with another word.
                    let begun = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
                    let unfinished = ErrorKind::MissingRequiredArgument;
                    error.use_stderr() && ![begun, unfinished].contains(&error.kind())
                });
                assert!(fault.is_none(), "{}: {}", page.place(line), fault.unwrap());
            }
        }
    }
    assert!(count > 20, "{count} commands");
}

/// The project's own chores, which contributors type.
#[test]
fn every_chore_is_one() {
    let known = include_str!("../../xtask/src/main.rs");
    for page in pages() {
        for step in page.blocks().into_iter().flat_map(|block| block.steps) {
            for call in calls(&step.command, "cargo") {
                let is_chore = call.get(1).is_some_and(|word| word == "xtask");
                let name = call.get(2).map_or("", String::as_str);
                let line = format!("\n  {name} ");
                let place = page.place(step.line);
                assert!(!is_chore || known.contains(&line), "{place}: {name}");
            }
        }
    }
}
