//! Remedies of libraries in the options of this program.

use volume::judge::State;

/// Parameters that remedies name in backquotes, and that are options by that name.
const PARAMETERS: [&str; 37] = [
    "as",
    "at",
    "blocks",
    "characters",
    "experimental",
    "fs_type",
    "hash",
    "header",
    "hosts",
    "keep_key_file",
    "keep_passphrase_file",
    "key_file",
    "key_size",
    "key_slot",
    "keyfile",
    "keyfile_offset",
    "keyfile_size",
    "matrix",
    "meant",
    "new_key_slot",
    "no_header_backup",
    "offset",
    "over_provisioning",
    "page_size",
    "partition",
    "passphrase_file",
    "read_only",
    "repeat",
    "sector_size",
    "shard",
    "size",
    "skip",
    "tcrypt_backup",
    "tcrypt_hidden",
    "tcrypt_system",
    "typed_on",
    "yes",
];

/// Parameters that C and Python call otherwise than this program.
const OTHERS: [(&str, &str); 3] = [
    ("format", "--type"),
    ("last_key", "--yes"),
    ("volume_key", "--volume-key-file"),
];

/// The remedy with parameters as options: `key_slot` is --key-slot. A loss is confirmed with --yes.
pub fn by_option(remedy: String) -> String {
    if !remedy.contains('`') {
        return remedy;
    }
    let losses = State::ALL.map(|state| {
        (
            format!("allow `{}`", state.name()),
            "confirm with --yes".to_owned(),
        )
    });
    let options =
        PARAMETERS.map(|name| (format!("`{name}`"), format!("--{}", name.replace('_', "-"))));
    let others = OTHERS.map(|(name, option)| (format!("`{name}`"), option.to_owned()));
    let words = losses.into_iter().chain(options).chain(others);
    words.fold(remedy, |told, (word, option)| told.replace(&word, &option))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Failure;
    use block::BlockError;
    use clap::{Command, CommandFactory};
    use lab::LabError;

    fn options(command: &Command) -> Vec<String> {
        let own = command
            .get_arguments()
            .filter_map(|option| option.get_long().map(str::to_owned));
        own.chain(command.get_subcommands().flat_map(options))
            .collect()
    }

    #[test]
    fn parameters_are_options() {
        let known = options(&crate::cli::Arguments::command());
        let others = OTHERS.map(|(_, option)| option[2..].to_owned());
        for name in PARAMETERS
            .map(|name| name.replace('_', "-"))
            .into_iter()
            .chain(others)
        {
            assert!(known.contains(&name), "{name}");
        }
    }

    #[test]
    fn options_are_named_through_what_wraps_the_error() {
        let full = BlockError::NoSpace {
            needed: 2,
            available: 1,
        };
        let deep = LabError::from(full);
        let told =
            "Free some space, choose a smaller --size, or point --at to another file system.";
        assert_eq!(Failure::from(deep).remedy(), told);
        let lost = "Nothing was changed. If there is none, allow `hidden`.";
        assert_eq!(
            by_option(lost.into()),
            "Nothing was changed. If there is none, confirm with --yes."
        );
    }
}
