//! `cargo xtask api`: the documentation without a warning, and the public items of the published
//! crates as each crate's `api.txt` lists them.
//!
//! The list is made by the library `public-api` from rustdoc's JSON, with all features, on Linux
//! on x86-64. It has the implementations of traits, and not the methods of derived ones.

use crate::publish::{CRATES, Published};
use crate::tools::told;
use crate::{cargo_command, root, tests};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The version of rustdoc's JSON that `public-api` 0.52.0 reads: Rust 1.95's.
const FORMAT: u64 = 57;

/// What every type implements that may; a type that does not has a line with `!`.
const AUTOMATIC: [&str; 7] = [
    "impl core::marker::Freeze",
    "impl core::marker::Send",
    "impl core::marker::Sync",
    "impl core::marker::Unpin",
    "impl core::marker::UnsafeUnpin",
    "impl core::panic::unwind_safe::RefUnwindSafe",
    "impl core::panic::unwind_safe::UnwindSafe",
];

/// Documents the workspace, and compares the public items with the lists, or writes these.
pub fn run(write: bool) -> bool {
    told(document()).is_some_and(|documents| {
        let done: Vec<bool> = CRATES
            .iter()
            .map(|one| told(compare(one, &documents, write)).unwrap_or_default())
            .collect();
        done.into_iter().all(|done| done)
    })
}

/// Documents the workspace as JSON, in which a warning is an error; the folder of it.
fn document() -> Result<PathBuf, String> {
    let target = root().join("target");
    let rustdoc = target.join("tools/rustdoc-json");
    // Only rustdoc may use what is unstable: build scripts that saw the variable would have
    // everything built again.
    let script = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    fs::create_dir_all(target.join("tools"))
        .and_then(|()| fs::write(&rustdoc, script))
        .and_then(|()| fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", rustdoc.display()))?;
    let documented = cargo_command()
        .args(["doc", "--workspace", "--no-deps", "--locked"])
        .args(tests::FEATURES)
        .env("RUSTDOC", rustdoc)
        .env(
            "RUSTDOCFLAGS",
            "-D warnings -Z unstable-options --output-format json",
        )
        .status();
    match documented {
        Ok(status) if status.success() => Ok(target.join("doc")),
        _ => Err("the documentation has warnings, or could not be made".to_owned()),
    }
}

/// Whether the crate's list is that of its documentation; says what differs.
fn compare(one: &Published, documents: &Path, write: bool) -> Result<bool, String> {
    let json = documents.join(one.library).with_extension("json");
    let text = fs::read(&json).map_err(|error| format!("{}: {error}", json.display()))?;
    let format: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", json.display()))?;
    if format["format_version"] != FORMAT || !cfg!(all(target_os = "linux", target_arch = "x86_64"))
    {
        let reason = "public items: the lists are made by Rust 1.95 on Linux, on x86-64";
        return Ok(tests::skip(reason));
    }
    let path = root().join("crates").join(one.folder).join("api.txt");
    let now = list(&json)?;
    let items = now.iter().filter(|line| !line.starts_with("impl")).count();
    println!("{}: {items} public items", one.package);
    if write {
        let text = now.join("\n") + "\n";
        return match fs::write(&path, text) {
            Ok(()) => Ok(true),
            Err(error) => Err(format!("{}: {error}", path.display())),
        };
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    let before: Vec<String> = listed.lines().map(str::to_owned).collect();
    let difference = Difference::between(&before, &now);
    eprint!("{}", difference.told(one.package));
    Ok(difference.is_empty())
}

/// The public items in rustdoc's JSON, a line each.
fn list(json: &Path) -> Result<Vec<String>, String> {
    let items = |derived: bool| -> Result<Vec<String>, String> {
        let api = public_api::Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_derived_impls(!derived)
            .build()
            .map_err(|error| format!("{}: {error}", json.display()))?;
        Ok(api.items().map(ToString::to_string).collect())
    };
    let own: HashSet<String> = items(false)?.into_iter().collect();
    let is_listed = |line: &String| {
        let is_automatic = AUTOMATIC.iter().any(|begin| line.starts_with(begin));
        !is_automatic && (own.contains(line) || line.starts_with("impl"))
    };
    Ok(items(true)?.into_iter().filter(is_listed).collect())
}

/// How a list differs from an earlier one.
struct Difference<'a> {
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
}

impl<'a> Difference<'a> {
    fn between(before: &'a [String], now: &'a [String]) -> Self {
        let only = |these: &'a [String], those: &[String]| {
            let those: HashSet<&String> = those.iter().collect();
            let only = these.iter().filter(|line| !those.contains(line));
            only.map(String::as_str).collect()
        };
        Self {
            removed: only(before, now),
            added: only(now, before),
        }
    }

    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// Whether code that uses the crate may fail to compile. A trait that a type no longer
    /// implements by itself is an added line.
    fn breaks(&self) -> bool {
        !self.removed.is_empty() || self.added.iter().any(|line| line.starts_with("impl !"))
    }

    fn told(&self, package: &str) -> String {
        let mut text = String::new();
        for line in &self.removed {
            text += &format!("{package}: removed: {line}\n");
        }
        for line in &self.added {
            text += &format!("{package}: added: {line}\n");
        }
        if !self.is_empty() {
            text += match self.breaks() {
                true => "This change asks for a new minor version. ",
                false => "A new patch version is enough, unless users must handle what was added. ",
            };
            text += "`cargo xtask api --write` writes the lists anew.\n";
        }
        text
    }
}

#[cfg(test)]
mod tests_of_differences {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_was_removed_or_changed_breaks_and_what_was_added_does_not() {
        let before = lines("pub fn a::f(u8)\npub struct a::S\nimpl core::clone::Clone for a::S");
        let same = Difference::between(&before, &before);
        assert!(same.is_empty() && !same.breaks() && same.told("a").is_empty());
        for (now, added, removed, breaks) in [
            (
                "pub fn a::f(u16)\npub struct a::S\nimpl core::clone::Clone for a::S",
                1,
                1,
                true,
            ),
            ("pub fn a::f(u8)\npub struct a::S", 0, 1, true),
            (
                "pub fn a::f(u8)\npub struct a::S\nimpl core::clone::Clone for a::S\npub fn a::g()",
                1,
                0,
                false,
            ),
            (
                "pub fn a::f(u8)\npub struct a::S\nimpl core::clone::Clone for a::S\n\
                 impl !core::marker::Send for a::S",
                1,
                0,
                true,
            ),
        ] {
            let now = lines(now);
            let difference = Difference::between(&before, &now);
            assert_eq!(difference.added.len(), added, "{now:?}");
            assert_eq!(difference.removed.len(), removed, "{now:?}");
            assert_eq!(difference.breaks(), breaks, "{now:?}");
        }
    }
}
