//! Plans that ship with the program, by their names of today and of before.

use super::Experiment;
use crate::error::LabError;
use std::path::Path;

/// Plans that ship with the program: (name, TOML).
const EMBEDDED: &[(&str, &str)] = &[
    ("quick", include_str!("../../plans/quick.toml")),
    ("advice", include_str!("../../plans/advice.toml")),
    ("ciphers", include_str!("../../plans/ciphers.toml")),
    ("java-os", include_str!("../../plans/java-os.toml")),
    (
        "storage-ciphers",
        include_str!("../../plans/storage-ciphers.toml"),
    ),
    (
        "fde-passmark",
        include_str!("../../plans/fde-passmark.toml"),
    ),
    (
        "ssd-truecrypt",
        include_str!("../../plans/ssd-truecrypt.toml"),
    ),
    (
        "crystaldiskmark",
        include_str!("../../plans/crystaldiskmark.toml"),
    ),
    (
        "crystaldiskmark-nvme",
        include_str!("../../plans/crystaldiskmark-nvme.toml"),
    ),
    ("snia", include_str!("../../plans/snia.toml")),
    ("as-ssd", include_str!("../../plans/as-ssd.toml")),
    ("database", include_str!("../../plans/database.toml")),
    (
        "cryptsetup-benchmark",
        include_str!("../../plans/cryptsetup-benchmark.toml"),
    ),
    ("crypto-fs", include_str!("../../plans/crypto-fs.toml")),
    (
        "crypto-fs-short",
        include_str!("../../plans/crypto-fs-short.toml"),
    ),
    (
        "file-systems",
        include_str!("../../plans/file-systems.toml"),
    ),
    (
        "file-encryption",
        include_str!("../../plans/file-encryption.toml"),
    ),
    (
        "dm-crypt-options",
        include_str!("../../plans/dm-crypt-options.toml"),
    ),
    ("integrity", include_str!("../../plans/integrity.toml")),
    ("kdf", include_str!("../../plans/kdf.toml")),
];

/// Plans by the names of the tools that they follow.
const ALIASES: &[(&str, &str)] = &[("anvil", "storage-ciphers"), ("passmark", "fde-passmark")];

/// Names and titles of the plans that ship.
pub fn shipped() -> Vec<(&'static str, String)> {
    EMBEDDED
        .iter()
        .map(|(name, text)| {
            let title = Experiment::parse(name, text);
            (
                *name,
                title.map_or_else(|_| String::new(), |plan| plan.title().to_owned()),
            )
        })
        .collect()
}

/// Other names of shipped plans, each with the plan's own.
pub const fn other_names() -> &'static [(&'static str, &'static str)] {
    ALIASES
}

/// The TOML of a shipped plan.
///
/// # Errors
/// [`LabError`].
pub fn toml(name: &str) -> Result<&'static str, LabError> {
    let name = shipped_name(name);
    EMBEDDED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, toml)| *toml)
        .ok_or_else(|| {
            let suggestion = EMBEDDED
                .iter()
                .map(|(known, _)| *known)
                .filter(|known| strsim::jaro_winkler(known, name) > 0.8)
                .max_by(|a, b| {
                    strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name))
                });
            let remedy = match suggestion {
                Some(plan) => format!("Did you mean {plan:?}? `cryptmark plans` lists them all."),
                None => {
                    "`cryptmark plans` lists the built-in plans. The name of a plan file ends in \
                     .toml."
                        .to_owned()
                }
            };
            LabError::invalid(format!("there is no plan {name:?}"), remedy)
        })
}

/// Name and TOML of a shipped plan, or of a file.
pub(crate) fn read(name_or_path: &str) -> Result<(String, String), LabError> {
    let path = Path::new(name_or_path);
    if path.extension().is_some_and(|suffix| suffix == "toml") {
        let text = std::fs::read_to_string(path).map_err(|source| {
            let what = format!("cannot read the plan {}", path.display());
            LabError::invalid(what, "Check the path and its permissions.").because(source)
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok((stem.into_owned(), text));
    }
    let text = toml(name_or_path)?;
    Ok((shipped_name(name_or_path).to_owned(), text.to_owned()))
}

/// The name of today of a shipped plan.
fn shipped_name(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| *name)
}
