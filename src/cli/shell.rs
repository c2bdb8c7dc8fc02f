//! `cryptmark completions` and `cryptmark man`: made from the arguments' own definitions.

use super::{Arguments, Failure, print};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::PathBuf;

/// Options of `cryptmark completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell
    shell: Shell,
}

/// Options of `cryptmark man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// Write a page for every command into this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

/// Prints a completion script.
pub fn completions(options: &CompletionsOptions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        options.shell,
        &mut Arguments::command(),
        "cryptmark",
        &mut script,
    );
    print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page, or writes all of them.
pub fn man(options: &ManOptions) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            1,
            format!("cannot write the manual pages: {error}"),
            "Give --out-dir a directory that exists and can be written.",
        )
    };
    match &options.out_dir {
        Some(directory) => {
            clap_mangen::generate_to(Arguments::command(), directory).map_err(failed)
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command())
                .render(&mut page)
                .map_err(failed)?;
            print(&String::from_utf8_lossy(&page))
        }
    }
}
