//! The archives of Debian that the system's apt knows, asked for a kernel's suite.

use std::fs;
use std::path::Path;

/// Suites that tell an archive of Debian from another's, without what may stand
/// behind a dash.
const DEBIAN: &[&str] = &[
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];

/// The archive of suites that the mirrors have dropped.
const OLD_SUITES: &str = "http://archive.debian.org/debian";

/// Sources for a private apt: files by name, with their content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) files: Vec<(&'static str, String)>,
}

/// The system's package sources, with the suites replaced by `suite`. The same keys check their signatures.
/// `None` if none of the archives is Debian's.
pub(super) fn of_the_system(etc: &Path, suite: &str) -> Option<Sources> {
    let mut paths = vec![etc.join("sources.list")];
    if let Ok(entries) = fs::read_dir(etc.join("sources.list.d")) {
        paths.extend(entries.flatten().map(|entry| entry.path()));
    }
    paths.sort();
    let (mut lines, mut stanzas) = (Vec::new(), Vec::new());
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("list") => lines.extend(text.lines().filter_map(|line| one_line(line, suite))),
            Some("sources") => {
                stanzas.extend(split_stanzas(&text).iter().filter_map(|s| stanza(s, suite)))
            }
            _ => {}
        }
    }
    let mut sources = Sources::default();
    lines.dedup();
    stanzas.dedup();
    if !lines.is_empty() {
        sources.files.push(("lab.list", lines.join("\n") + "\n"));
    }
    if !stanzas.is_empty() {
        sources.files.push(("lab.sources", stanzas.join("\n")));
    }
    (!sources.files.is_empty()).then_some(sources)
}

impl Sources {
    /// The same keys and options, on the archive of old suites.
    pub(super) fn in_the_archive(&self) -> Self {
        let moved = |&(name, ref text): &(&'static str, String)| {
            let text = match name {
                "lab.list" => text.lines().map(moved_line).collect(),
                _ => text.lines().map(moved_field).collect(),
            };
            (name, text)
        };
        Self {
            files: self.files.iter().map(moved).collect(),
        }
    }
}

fn moved_line(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.contains("://") {
        true => OLD_SUITES,
        false => word,
    });
    words.collect::<Vec<_>>().join(" ") + "\n"
}

fn moved_field(line: &str) -> String {
    match line.starts_with("URIs:") {
        true => format!("URIs: {OLD_SUITES}\n"),
        false => format!("{line}\n"),
    }
}

/// `deb [options] URI suite component…`, for our suite.
fn one_line(line: &str, suite: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (options, rest) = rest.split_once(']')?;
            (Some(options.trim()), rest)
        }
        None => (None, rest),
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let mut words = rest.split_whitespace();
    let (uri, theirs) = (words.next()?, words.next()?);
    if !is_main(theirs) || !words.any(|component| component == "main") {
        return None;
    }
    Some(match options {
        Some(options) => format!("deb [{options}] {uri} {suite} main"),
        None => format!("deb {uri} {suite} main"),
    })
}

/// A suite of the whole archive; security and updates have none of ours.
fn is_main(suite: &str) -> bool {
    DEBIAN.contains(&suite)
}

fn split_stanzas(text: &str) -> Vec<String> {
    let mut stanzas = vec![String::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.trim().is_empty() {
            true => stanzas.push(String::new()),
            false => {
                if let Some(last) = stanzas.last_mut() {
                    last.push_str(line);
                    last.push('\n');
                }
            }
        }
    }
    stanzas
}

/// A stanza for our suite; keys that stand in it stay.
fn stanza(text: &str, suite: &str) -> Option<String> {
    let mut kept = String::new();
    let (mut binary, mut ours, mut main, mut enabled) = (false, false, false, true);
    // Lines that go on are indented.
    let mut dropping = false;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            if !dropping {
                kept.push_str(line);
                kept.push('\n');
            }
            continue;
        }
        let (field, value) = line.split_once(':')?;
        let mut words = value.split_whitespace();
        dropping = true;
        match field.to_ascii_lowercase().as_str() {
            "types" => binary = words.any(|word| word == "deb"),
            "suites" => ours = words.any(is_main),
            "components" => main = words.any(|word| word == "main"),
            "enabled" => enabled = !words.any(|word| word == "no"),
            _ => {
                dropping = false;
                kept.push_str(line);
                kept.push('\n');
            }
        }
    }
    (binary && ours && main && enabled)
        .then(|| format!("Types: deb\nSuites: {suite}\nComponents: main\n{kept}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Option<Sources> {
        let etc = tempfile::tempdir().unwrap();
        fs::create_dir(etc.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            fs::write(etc.path().join(name), text).unwrap();
        }
        of_the_system(etc.path(), "bullseye")
    }

    #[test]
    fn one_line_sources_get_our_suite() {
        let found = sources(&[(
            "sources.list",
            "# a comment\n\
             deb http://mirror/debian bookworm main contrib # more\n\
             deb-src http://mirror/debian bookworm main\n\
             deb [arch=amd64 signed-by=/k.gpg] https://other/debian stable main\n\
             deb http://security/debian-security bookworm-security main\n\
             deb https://packages.example.org/apt cloud-sdk-bookworm main\n\
             deb http://archive.ubuntu.com/ubuntu noble main\n",
        )])
        .unwrap();
        let expected = "deb http://mirror/debian bullseye main\n\
             deb [arch=amd64 signed-by=/k.gpg] https://other/debian bullseye main\n";
        assert_eq!(found.files, [("lab.list", expected.to_owned())]);
        let moved = "deb http://archive.debian.org/debian bullseye main\n\
             deb [arch=amd64 signed-by=/k.gpg] http://archive.debian.org/debian bullseye main\n";
        assert_eq!(
            found.in_the_archive().files,
            [("lab.list", moved.to_owned())]
        );
    }

    #[test]
    fn stanzas_keep_their_keys_and_nothing_else_is_taken() {
        let found = sources(&[
            (
                "sources.list.d/debian.sources",
                "Types: deb deb-src\n# where\nURIs: http://mirror/debian\nSuites: trixie trixie-updates\n\
                 Components: main non-free-firmware\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQIN\n\n\
                 Types: deb\nURIs: http://security\nSuites: trixie-security\nComponents: main\n\n\
                 Types: deb\nURIs: http://off\nSuites: trixie\nComponents: main\nEnabled: no\n",
            ),
            ("sources.list.d/off.list.disabled", "deb http://mirror/debian sid main\n"),
        ])
        .unwrap();
        let expected = "Types: deb\nSuites: bullseye\nComponents: main\nURIs: http://mirror/debian\n\
             Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQIN\n";
        assert_eq!(found.files, [("lab.sources", expected.to_owned())]);
        let moved = found.in_the_archive();
        assert!(
            moved.files[0]
                .1
                .contains("\nURIs: http://archive.debian.org/debian\n")
        );
        assert!(moved.files[0].1.contains("\n mQIN\n"));
    }

    #[test]
    fn other_systems_have_none() {
        let ubuntu = "Types: deb\nURIs: http://archive.ubuntu.com/ubuntu\nSuites: noble noble-updates\nComponents: main\n";
        assert_eq!(sources(&[("sources.list.d/ubuntu.sources", ubuntu)]), None);
        assert_eq!(sources(&[]), None);
    }
}
