//! The list has every promise of the page, and what it names is there.

use super::list;
use crate::{prose, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Each bullet and each row of a table in these sections is a promise.
const SECTIONS: [&str; 6] = [
    "What is promised",
    "Memory",
    "Confinement",
    "Servers",
    "Programs and places",
    "Work and words",
];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The text with single spaces, whatever its lines are.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The bullets of a section and the rows of its tables, without the heads.
fn items(section: &str) -> Vec<String> {
    let page = read("docs/SECURITY.md");
    let (_, section) = page.split_once(&format!("\n## {section}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut items: Vec<String> = Vec::new();
    for line in section.lines() {
        if line.starts_with("|---") {
            items.pop();
        } else if line.starts_with("* ") || line.starts_with("| ") {
            items.push(line.to_owned());
        } else if line.starts_with("  ") {
            items.last_mut().unwrap().extend([" ", line]);
        }
    }
    items.iter().map(|item| flat(item)).collect()
}

/// All sources of tests, with their paths.
fn sources() -> Vec<(PathBuf, String)> {
    let folders = ["src", "tests", "crates"].into_iter();
    let paths = folders.flat_map(|folder| prose::files(&root(), folder, "rs"));
    let both = |path: PathBuf| (path.clone(), read(path.to_str().unwrap()));
    paths.map(both).collect()
}

#[test]
fn every_promise_is_broken_or_says_why_not() {
    let list = list();
    assert!(list.unbroken.iter().all(|one| !one.because.is_empty()));
    let broken = list.broken.into_iter().map(|one| one.says);
    let said: Vec<_> = broken
        .chain(list.unbroken.into_iter().map(|one| one.says))
        .collect();
    let page = flat(&read("docs/SECURITY.md"));
    for says in &said {
        assert_eq!(page.matches(says.as_str()).count(), 1, "{says}");
    }
    for item in SECTIONS.into_iter().flat_map(items) {
        let is_named = said.iter().any(|says| item.contains(says));
        assert!(is_named, "promises.toml has nothing of: {item}");
    }
}

#[test]
fn what_breaks_a_promise_is_there_once() {
    let sources = sources();
    for one in list().broken {
        assert_eq!(
            read(&one.file).matches(&one.from).count(),
            1,
            "{}",
            one.from
        );
        let [package, program, test] = &one.test;
        let package = package.strip_prefix("cryptmark-");
        let package = package.map_or_else(PathBuf::new, |name| Path::new("crates").join(name));
        let place = package.join(match program.as_str() {
            "lib" | "bin" => "src".into(),
            name => Path::new("tests").join(name),
        });
        let function = format!("fn {}(", test.rsplit("::").next().unwrap());
        let is_there = sources.iter().any(|(path, text)| {
            let is_meant = path.starts_with(&place) || *path == place.with_extension("rs");
            is_meant && text.contains(&function)
        });
        assert!(is_there, "{test}");
    }
}

#[test]
fn tests_of_the_attacks_are_there() {
    let sources = sources();
    let rows = items("Attacks that others have had");
    assert!(rows.len() > 20);
    for row in rows {
        let test = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in test.split('`').skip(1).step_by(2) {
            let name = name.trim_end_matches("::").trim_end_matches(".rs");
            let function = format!("fn {}(", name.rsplit("::").next().unwrap());
            let is_there = sources.iter().any(|(path, text)| {
                path.iter()
                    .any(|part| Path::new(part).file_stem() == Some(name.as_ref()))
                    || text.contains(&function)
            });
            assert!(is_there, "{name} in {row}");
        }
    }
}
