//! `cryptmark`: measures what encrypting storage costs on this machine.
//!
//! Arguments, progress and printing live here; the work is done by the crates.

#![forbid(unsafe_code)]

// Some of the code is used only by commands that need Linux.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod cli;

use clap::{CommandFactory, FromArgMatches};
use cli::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    let arguments = {
        cli::protection::begin();
        cli::unseen::hide();
        cli::unseen::arguments()
    };
    #[cfg(not(target_os = "linux"))]
    let arguments = std::env::args_os();
    let parsed = Arguments::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (Arguments { store, command }, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return cli::usage(&error),
    };
    let outcome = match command {
        Command::Run(options) => cli::run::run(&options, store.as_deref()),
        Command::Plans(options) => cli::plans::run(&options),
        Command::List => cli::stored::list(store.as_deref()),
        Command::Show(options) => cli::stored::show(&options, store.as_deref()),
        Command::Store(options) => cli::store::run(&options, store.as_deref()),
        Command::Fleet(options) => cli::fleet::run(&options, store.as_deref()),
        Command::Baseline(options) => cli::baseline::run(&options, store.as_deref()),
        Command::Import(options) => cli::import::run(&options, store.as_deref()),
        #[cfg(feature = "fleet")]
        Command::Export(options) => cli::export::run(&options, store.as_deref()),
        Command::Compare(options) => cli::compare::run(&options, store.as_deref()),
        Command::Ui(options) => cli::ui::run(options, store.as_deref()),
        Command::Report(options) => cli::report::run(&options, store.as_deref()),
        Command::Papercheck(options) => cli::papercheck::run(&options),
        Command::Advise(options) => cli::advise::run(&options, store.as_deref()),
        Command::Volume(options) => cli::volume::run(&options, &matches),
        Command::Drive(options) => cli::drive::run(&options, store.as_deref()),
        Command::Lab(options) => cli::lab::run(options),
        Command::Doctor(options) => cli::doctor::run(&options),
        #[cfg(target_os = "linux")]
        Command::Agent(options) => cli::agent::run(&options),
        #[cfg(target_os = "linux")]
        Command::EngineFile => cli::agent::serve(),
        #[cfg(target_os = "linux")]
        Command::Unmounter => cli::volume::service::unmount_for_server(),
        Command::Completions(options) => cli::completions::run(&options),
        Command::Man(options) => cli::man::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(),
    }
}
