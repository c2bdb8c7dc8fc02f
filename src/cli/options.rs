//! Tests of how options depend on one another.

use super::Arguments;
use clap::{Arg, Command, CommandFactory};

/// The arguments that `arg` requires. clap tells them in Debug alone.
fn required<'a>(command: &'a Command, arg: &Arg) -> Vec<&'a Arg> {
    let debug = format!("{arg:?}");
    let (_, requires) = debug.split_once(", requires: [").unwrap();
    let (requires, _) = requires.split_once(']').unwrap();
    let is_named = |other: &&Arg| requires.contains(&format!("\"{}\"", other.get_id()));
    command.get_arguments().filter(is_named).collect()
}

fn exclude(command: &Command, one: &Arg, other: &Arg) -> bool {
    let names = |of: &Arg, with: &Arg| {
        let mut all = command.get_arg_conflicts_with(of).into_iter();
        all.any(|known| known.get_id() == with.get_id())
    };
    names(one, other) || names(other, one)
}

/// clap forgives what is required and not given if something that is given excludes it. An
/// argument that depends on another must exclude what that one excludes, or it has no effect.
fn check(command: &Command, path: &str, found: &mut Vec<String>, seen: &mut usize) {
    for arg in command.get_arguments() {
        for required in required(command, arg) {
            *seen += 1;
            let open = command.get_arguments().filter(|other| {
                other.get_id() != arg.get_id()
                    && exclude(command, required, other)
                    && !exclude(command, arg, other)
            });
            let (arg, required) = (arg.get_id(), required.get_id());
            found.extend(
                open.map(|other| {
                    format!("{path}: {arg} with {}, without {required}", other.get_id())
                }),
            );
        }
    }
    for sub in command.get_subcommands() {
        check(sub, &format!("{path} {}", sub.get_name()), found, seen);
    }
}

#[test]
fn no_option_loses_what_it_depends_on() {
    let mut command = Arguments::command();
    command.build();
    let (mut found, mut seen) = (Vec::new(), 0);
    check(&command, "", &mut found, &mut seen);
    assert!(found.is_empty(), "{found:#?}");
    assert!(seen > 30, "{seen}");
}
