//! What only Linux or Unix has is named where the sources ask for the system. A build
//! for another system proves more; it takes minutes, and this no time.

use std::fs;
use std::path::{Path, PathBuf};

/// What other systems do not have.
const ABSENT: &[&str] = &[
    "std::os::unix",
    "std::os::linux",
    "std::os::fd",
    "rustix::",
    "nix::",
    "io_uring::",
    "command_fds::",
    "use serve::",
];

/// Crates that need Linux as they are.
const OF_LINUX: &[&str] = &["serve", "fleet"];

/// Where `files`, below `root`, name what other systems do not have without asking.
pub fn offences(root: &Path, files: &[PathBuf]) -> Vec<String> {
    let sources: Vec<(&Path, String)> = files
        .iter()
        .filter(|file| is_portable(file))
        .map(|file| {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            (file.as_path(), text)
        })
        .collect();
    let asked: Vec<PathBuf> = sources
        .iter()
        .flat_map(|(file, text)| modules_that_ask(file, text))
        .collect();
    sources
        .iter()
        .filter(|(file, _)| !asked.iter().any(|module| is_in(file, module)))
        .flat_map(|(file, text)| offences_in(file, text))
        .collect()
}

/// Sources of what is built for other systems too; tests are for Linux.
fn is_portable(file: &Path) -> bool {
    let of_linux = |name: &&str| file.starts_with(Path::new("crates").join(name));
    let mut parts = file.components();
    parts.any(|part| part.as_os_str() == "src") && !OF_LINUX.iter().any(of_linux)
}

/// The modules that `file` declares for some systems or features alone, as paths
/// without an ending.
fn modules_that_ask(file: &Path, text: &str) -> Vec<PathBuf> {
    let of_a_folder = ["mod", "lib", "main"].map(|stem| file.file_stem() == Some(stem.as_ref()));
    let folder = match of_a_folder.contains(&true) {
        true => file.parent().unwrap_or(file).to_owned(),
        false => file.with_extension(""),
    };
    let declared = |line: &str| {
        let (_, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        Some(folder.join(name))
    };
    lines(text)
        .filter(|(_, _, asked)| *asked)
        .filter_map(|(_, line, _)| declared(line))
        .collect()
}

/// Whether `file` is the module at `path`, or one of those in it.
fn is_in(file: &Path, path: &Path) -> bool {
    file.with_extension("").starts_with(path)
}

fn offences_in(file: &Path, text: &str) -> Vec<String> {
    lines(text)
        .filter(|(_, line, asked)| !asked && !line.trim_start().starts_with("//"))
        .filter_map(|(number, line, _)| {
            let word = ABSENT.iter().find(|word| super::names(line, word))?;
            Some(format!(
                "{}:{number}: {word} is not on every system: #[cfg(…)] asks for it",
                file.display()
            ))
        })
        .collect()
}

/// The lines of `text` with their numbers, and whether each stands in what an
/// attribute includes for some systems alone: as rustfmt lays it out, an item ends with
/// the first line of its own depth that closes it.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str, bool)> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut asked: Option<usize> = None;
    text.lines().enumerate().map(move |(index, line)| {
        if asked.is_none() && line.trim_start().starts_with("#[cfg(") {
            asked = Some(depth(line));
        }
        let stands = asked.is_some();
        let closes = line.ends_with([';', ',', '}']) && !line.trim_start().starts_with("//");
        if closes && asked.is_some_and(|outer| depth(line) <= outer) {
            asked = None;
        }
        (index + 1, line, stands)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_is_found() {
        let found = |text: &str| offences_in(Path::new("crates/lab/src/x.rs"), text).len();
        assert_eq!(found("use std::os::unix::fs::MetadataExt;\n"), 1);
        assert_eq!(found("fn a() {\n    rustix::process::getpid();\n}\n"), 1);
        assert_eq!(found("/// As std::os::unix has it.\n"), 0);
        assert_eq!(
            found("#[cfg(unix)]\nuse std::os::unix::fs::MetadataExt;\n"),
            0
        );
        let function = "#[cfg(unix)]\nfn a() {\n    rustix::x();\n}\n";
        assert_eq!(found(function), 0);
        assert_eq!(found(&format!("{function}use serve::X;\n")), 1);
        let arm = "match a {\n    #[cfg(unix)]\n    A => nix::X,\n    B => nix::Y,\n}\n";
        assert_eq!(found(arm), 1);
    }

    #[test]
    fn a_module_asks_for_those_in_it() {
        let text = "#[cfg(target_os = \"linux\")]\npub mod kernel;\nmod plan;\n";
        let asked = modules_that_ask(Path::new("crates/lab/src/lib.rs"), text);
        assert_eq!(asked, [Path::new("crates/lab/src/kernel")]);
        for (file, asks) in [
            ("crates/lab/src/kernel.rs", true),
            ("crates/lab/src/kernel/boot.rs", true),
            ("crates/lab/src/experiment.rs", false),
        ] {
            assert_eq!(is_in(Path::new(file), &asked[0]), asks, "{file}");
        }
        let below = modules_that_ask(Path::new("crates/lab/src/probe/host.rs"), text);
        assert_eq!(below, [Path::new("crates/lab/src/probe/host/kernel")]);
    }
}
