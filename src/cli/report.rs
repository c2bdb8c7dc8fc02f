//! `cryptmark report`: stored runs as a page, a table or data, or all of them in
//! a browser.

use super::web::{self, store::Shelf};
use super::whole::{self, Target};
use super::{Failure, open_store, print, standard, style};
use clap::Args;
use lab::record::Run;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    #[arg(long, default_value_t = 0, requires = "serve")]
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
    let text = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("html" | "htm") => ::report::html::render(runs),
        Some("md") => ::report::markdown::render(runs),
        Some("csv") => ::report::csv::render(runs),
        Some("json") => ::report::json::render(runs).map_err(Failure::unprintable)?,
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
    put(path, &text)
}

/// Writes text to `path`, whole or not at all; `-` is standard output, and pipes take it
/// as it comes.
pub fn put(path: &Path, text: &str) -> Result<(), Failure> {
    if path == Path::new("-") {
        standard::check_output()?;
        return print(text);
    }
    let write = || -> std::io::Result<()> {
        let target = Target::of(path)?;
        if let Some(mut stream) = target.stream()? {
            return stream.write_all(text.as_bytes());
        }
        let mut new = tempfile::Builder::new();
        // A report is meant to be shown, as far as the umask lets any new file be.
        #[cfg(unix)]
        new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = new.tempfile_in(target.folder())?;
        file.write_all(text.as_bytes())?;
        target.publish(file)
    };
    write().map_err(|error| whole::unwritable(path, &error))
}
