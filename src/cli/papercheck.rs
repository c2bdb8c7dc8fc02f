//! `cryptmark papercheck`: whether a document's percentages follow from its own figures.

use super::{Failure, print};
use clap::Args;
use lab::LabError;
use lab::published::claims::{Claim, Finding, check};
use lab::published::{Document, Row, rows};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Options of `cryptmark papercheck`.
#[derive(Debug, Args)]
#[command(after_help = "\
A claimed difference \"A over B\" of p % follows if numbers that round to the printed figures of A and B give it.
The exit code is 5 if a claim does not follow, or if two claims about the same difference disagree. Otherwise
it is 0, even if the document does not print the figures of a claim.")]
pub struct PapercheckOptions {
    /// A built-in document (storage-ciphers, fde-passmark, java-os, ssd-truecrypt, crypto-fs), or
    /// a CSV file with the figures of a document, one a row, in the same columns
    #[arg(value_name = "NAME|FILE.csv")]
    file: PathBuf,
}

/// Runs the command.
pub fn run(options: &PapercheckOptions) -> Result<(), Failure> {
    let file = &options.file;
    let within = |error: LabError| Failure::from(error).within(&file.display().to_string());
    let known = |document: &Document| file.as_os_str() == document.name();
    let rows = match Document::ALL.into_iter().find(known) {
        Some(document) => document.rows(),
        None => rows(File::open(file).map_err(|error| {
            let names = Document::ALL.map(Document::name);
            Failure::new(
                2,
                format!("cannot open {}: {error}", file.display()),
                format!(
                    "Give one of {}, or a CSV file with their columns.",
                    names.join(", ")
                ),
            )
        })?),
    }
    .map_err(within)?;
    let claims = check(&rows).map_err(within)?;
    print(&told(file, &claims))?;
    let wrong = claims.iter().filter(|claim| claim.finding.is_wrong());
    match wrong.count() {
        0 => Ok(()),
        wrong => Err(Failure::new(
            5,
            format!(
                "of {} claimed percentages, {wrong} cannot be relied on",
                claims.len()
            ),
            "Do not repeat them; the rows above say what the document's own figures give.",
        )),
    }
}

/// The report of the claims: the wrong ones first, then a summary.
fn told(file: &Path, claims: &[Claim<'_>]) -> String {
    let mut text = String::new();
    for Claim { row, finding } in claims {
        let place = format!("{}, line {}, row {}", file.display(), row.line, row.row);
        let claim = format!("{}: {} %", about(row), row.value.trim());
        let _ = match finding {
            Finding::DoesNotFollow {
                better,
                than,
                gives,
            } => writeln!(
                text,
                "{place}: {claim} does not follow: {} {} and {} {} (rows {} and {}) give {gives:.2} %",
                better.value, better.unit, than.value, than.unit, better.row, than.row
            ),
            Finding::Contradicted { by } => writeln!(
                text,
                "{place}: {claim}, and {} % in line {}, row {} ({})",
                by.value, by.line, by.row, by.figure
            ),
            Finding::Follows | Finding::Unfounded => continue,
        };
    }
    let count = |is: fn(&Finding<'_>) -> bool| claims.iter().filter(|c| is(&c.finding)).count();
    let _ = writeln!(
        text,
        "{} claimed percentages; following from their figures: {}, not following: {}, claimed in two ways: {}, without figures: {}",
        claims.len(),
        count(|finding| *finding == Finding::Follows),
        count(|finding| matches!(finding, Finding::DoesNotFollow { .. })),
        count(|finding| matches!(finding, Finding::Contradicted { .. })),
        count(|finding| *finding == Finding::Unfounded),
    );
    text
}

/// The subject of a row: its figure, system, device, cipher, pattern, direction and metric, as far
/// as they are filled in.
fn about(row: &Row) -> String {
    let words = [
        &row.figure,
        &row.system,
        &row.device,
        &row.cipher,
        &row.pattern,
        &row.direction,
        &row.metric,
    ];
    let words: Vec<&str> = words
        .into_iter()
        .map(|word| word.trim())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(", ")
}
