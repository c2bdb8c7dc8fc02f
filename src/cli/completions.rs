//! `cryptmark completions`: made from the arguments' own definitions.

use super::{Arguments, Failure, print};
use clap::builder::PossibleValuesParser;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use drive::preset::Preset;
use lab::experiment;

/// Options of `cryptmark completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(options: &CompletionsOptions) -> Result<(), Failure> {
    let plans = || experiment::shipped().into_iter().map(|(name, _)| name);
    let mut command = shown(&Arguments::command());
    command = offering(command, &["plans", "show"], "name", plans());
    if options.shell == Shell::Bash {
        // Where no name fits, bash alone goes on to files.
        command = offering(command, &["run"], "plan", plans());
        for action in ["lifetime", "predict", "run"] {
            command = offering(command, &["drive", action], "device", Preset::names());
        }
        command = offering(command, &["drive", "show"], "name", Preset::names());
    }
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "cryptmark", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// `command` without what only the program itself asks for: clap hides that
/// from its help, and not from every shell.
fn shown(command: &Command) -> Command {
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    Command::new("cryptmark")
        .version(super::VERSION)
        .propagate_version(true)
        .args(command.get_arguments())
        .subcommands(subcommands)
}

/// `command` with `names` for the `argument` of the subcommand at `path`.
fn offering(
    command: Command,
    path: &[&'static str],
    argument: &str,
    names: impl Iterator<Item = &'static str>,
) -> Command {
    match path {
        [] => {
            let names = PossibleValuesParser::new(names);
            command.mut_arg(argument, |argument| argument.value_parser(names))
        }
        [first, rest @ ..] => {
            command.mut_subcommand(first, |sub| offering(sub, rest, argument, names))
        }
    }
}
