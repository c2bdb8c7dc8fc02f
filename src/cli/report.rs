//! `cryptmark report`: stored runs as a page, a table or data, or all of them in
//! a browser.

use super::web::{self, store::Shelf};
use super::whole::{self, Kind, Target};
use super::{Failure, open_store, print, standard, style};
use clap::Args;
use lab::record::Run;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The record of a run.
pub const RECORD: Kind = Kind::Json("cryptmark");

/// Options of `cryptmark report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Runs: ids or the start of an id, baselines, or `latest`
    #[arg(required_unless_present = "serve", value_name = "ID")]
    ids: Vec<String>,
    /// The file to write: .html, .md, .csv or .json [default: text on the terminal]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show all stored runs to a browser on this machine, until Ctrl-C
    #[arg(long, conflicts_with_all = ["ids", "output"])]
    serve: bool,
    /// The port of 127.0.0.1 to serve on; 0 is any free port
    #[arg(long, default_value_t = 0, requires = "serve", conflicts_with_all = ["ids", "output"])]
    port: u16,
}

/// Runs the command.
pub fn run(options: &ReportOptions, store: Option<&str>) -> Result<(), Failure> {
    let store = open_store(store)?;
    if options.serve {
        return web::serve(Shelf(store), options.port);
    }
    let runs = options
        .ids
        .iter()
        .map(|id| store.load(id))
        .collect::<Result<Vec<Run>, _>>()?;
    match &options.output {
        Some(path) => write(path, &runs),
        None => {
            let tables: Vec<String> = runs
                .iter()
                .map(|run| ::report::text::table(run, &style()))
                .collect();
            print(&tables.join("\n"))
        }
    }
}

/// Writes runs to `path` in the format that its suffix names; the file
/// appears whole or not at all.
pub fn write(path: &Path, runs: &[Run]) -> Result<(), Failure> {
    let (kind, text) = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("html" | "htm") => (Kind::Html, ::report::html::render(runs)),
        Some("md") => (Kind::Markdown, ::report::markdown::render(runs)),
        Some("csv") => (Kind::Csv, ::report::csv::render(runs)),
        Some("json") => {
            let json = ::report::json::render(runs).map_err(Failure::unprintable)?;
            (RECORD, json)
        }
        _ => {
            return Err(Failure::new(
                2,
                format!(
                    "{} does not end in the suffix of a report format",
                    path.display()
                ),
                "Use .html, .md, .csv or .json.",
            ));
        }
    };
    put(path, kind, &text)
}

/// Refuses a place that could not be written later, before a measurement.
///
/// # Errors
/// Those of [`put`].
pub fn check(path: &Path, kind: Kind) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => standard::check_output(),
        false => Target::of(path, kind, false).map(drop),
    }
}

/// The same for a page and a record, which need a place each.
///
/// # Errors
/// Those of [`check`], and exit code 2 if both have one name.
pub fn check_both(html: Option<&Path>, json: Option<&Path>, record: Kind) -> Result<(), Failure> {
    html.map_or(Ok(()), |path| check(path, Kind::Html))?;
    json.map_or(Ok(()), |path| check(path, record))?;
    match (html, json) {
        (Some(html), Some(json)) if whole::is_same(html, json) => Err(Failure::new(
            2,
            format!("--json and --html both name {}", html.display()),
            "Give each a file of its own.",
        )),
        _ => Ok(()),
    }
}

/// Writes text to `path`, whole or not at all; `-` is standard output, and pipes take it
/// as it comes.
pub fn put(path: &Path, kind: Kind, text: &str) -> Result<(), Failure> {
    if path == Path::new("-") {
        standard::check_output()?;
        return print(text);
    }
    let target = Target::of(path, kind, false)?;
    let write = || -> std::io::Result<()> {
        if let Some(mut stream) = target.stream()? {
            return stream.write_all(text.as_bytes());
        }
        // A report is meant to be shown, as far as the umask lets any new file be.
        let mut draft = target.draft(0o666)?;
        draft.write_all(text.as_bytes())?;
        target.publish(draft)
    };
    write().map_err(|error| whole::unwritable(path, &error))
}
