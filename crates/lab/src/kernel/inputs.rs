//! The inputs of the kernel's build, and the name in the cache that is derived from them.

use sha2::{Digest, Sha256};
use std::process::Stdio;

/// The source package, and the suite of Debian that has it. The suite is closed, so this version
/// stays in it, here and in the archive of old suites.
pub(super) const PACKAGE: &str = "linux-source-5.10";
pub(super) const VERSION: &str = "5.10.223-1";
pub(super) const SUITE: &str = "bullseye";

/// The configuration, for `allnoconfig`.
pub(super) const CONFIG: &str = include_str!("../../kernel/config");

/// In the order in which they are applied.
pub(super) const PATCHES: &[(&str, &str)] = &[
    (
        "0001-mtd-without-iomem",
        include_str!("../../kernel/patches/0001-mtd-without-iomem.patch"),
    ),
    (
        "0002-um-keep-wide-registers",
        include_str!("../../kernel/patches/0002-um-keep-wide-registers.patch"),
    ),
    (
        "0003-um-leave-nothing-behind",
        include_str!("../../kernel/patches/0003-um-leave-nothing-behind.patch"),
    ),
    (
        "0004-um-account-cpu-time-by-the-clock",
        include_str!("../../kernel/patches/0004-um-account-cpu-time-by-the-clock.patch"),
    ),
    (
        "0005-hostfs-below-overlayfs",
        include_str!("../../kernel/patches/0005-hostfs-below-overlayfs.patch"),
    ),
    (
        "0006-um-lab-descriptors",
        include_str!("../../kernel/patches/0006-um-lab-descriptors.patch"),
    ),
    (
        "0007-time-the-transforms",
        include_str!("../../kernel/patches/0007-time-the-transforms.patch"),
    ),
];

/// The part of a cache folder's name that source, configuration and patches give.
pub(super) fn sources_key() -> String {
    let mut hash = Sha256::new();
    for part in [PACKAGE, VERSION, CONFIG] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    for (name, patch) in PATCHES {
        hash.update((patch.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(patch);
    }
    let digest = hash.finalize();
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The compiler's part of the name, as `gcc-12.2.0`; `None` if there is no compiler.
pub(super) fn compiler_key() -> Option<String> {
    let output = block::program::command("gcc")
        .args(["-dumpfullversion"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let version = String::from_utf8(output.stdout).ok()?;
    let version = version.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    (!version.is_empty() && version.bytes().all(plain)).then(|| format!("gcc-{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_a_name() {
        let key = sources_key();
        assert_eq!(key.len(), 16);
        assert!(key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn every_patch_is_listed_and_says_its_licence() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernel/patches");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let listed: Vec<String> = PATCHES
            .iter()
            .map(|(name, _)| format!("{name}.patch"))
            .collect();
        assert_eq!(files, listed);
        for (name, patch) in PATCHES {
            assert!(
                patch.starts_with("SPDX-License-Identifier: GPL-2.0\n"),
                "{name}"
            );
        }
    }
}
