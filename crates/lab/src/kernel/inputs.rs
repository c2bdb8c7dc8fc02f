//! [`Version`]: the inputs of a kernel's build, and the name in the cache that is derived from them.

use sha2::{Digest, Sha256};
use std::fmt;
use std::process::Stdio;

/// A version of the lab kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Linux 5.10, which has cryptoloop.
    V5_10,
    /// Linux 6.1, which has HCTR2.
    V6_1,
}

/// A patch: its name, and its text.
type Patch = (&'static str, &'static str);

impl Version {
    /// All versions.
    pub const ALL: [Self; 2] = [Self::V5_10, Self::V6_1];

    /// The name, as `5.10`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V5_10 => "5.10",
            Self::V6_1 => "6.1",
        }
    }

    /// The source package.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::V5_10 => "linux-source-5.10",
            Self::V6_1 => "linux-source-6.1",
        }
    }

    /// The version of the source package for which the patches were made. It is that of the
    /// suite's last point release, so it stays there, here and in the archive of old suites.
    pub(super) fn release(self) -> &'static str {
        match self {
            Self::V5_10 => "5.10.223-1",
            Self::V6_1 => "6.1.176-1",
        }
    }

    /// The suite of Debian that has the source package.
    pub(super) fn suite(self) -> &'static str {
        match self {
            Self::V5_10 => "bullseye",
            Self::V6_1 => "bookworm",
        }
    }

    /// The configuration, for `allnoconfig`.
    pub(super) fn config(self) -> &'static str {
        match self {
            Self::V5_10 => include_str!("../../kernel/5.10/config"),
            Self::V6_1 => include_str!("../../kernel/6.1/config"),
        }
    }

    /// The patches, in the order in which they are applied.
    pub(super) fn patches(self) -> &'static [Patch] {
        match self {
            Self::V5_10 => V5_10_PATCHES,
            Self::V6_1 => V6_1_PATCHES,
        }
    }

    /// Lines that make prints for the configuration, for the progress.
    pub(super) fn lines(self) -> u64 {
        match self {
            Self::V5_10 => 1240,
            Self::V6_1 => 1360,
        }
    }

    /// The part of a cache folder's name that source, configuration and patches give.
    pub(super) fn sources_key(self) -> String {
        let mut hash = Sha256::new();
        for part in [self.package(), self.release(), self.config()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        for (name, patch) in self.patches() {
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
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const V5_10_PATCHES: &[Patch] = &[
    (
        "0001-mtd-without-iomem",
        include_str!("../../kernel/5.10/patches/0001-mtd-without-iomem.patch"),
    ),
    (
        "0002-um-keep-wide-registers",
        include_str!("../../kernel/5.10/patches/0002-um-keep-wide-registers.patch"),
    ),
    (
        "0003-um-leave-nothing-behind",
        include_str!("../../kernel/5.10/patches/0003-um-leave-nothing-behind.patch"),
    ),
    (
        "0004-um-account-cpu-time-by-the-clock",
        include_str!("../../kernel/5.10/patches/0004-um-account-cpu-time-by-the-clock.patch"),
    ),
    (
        "0005-hostfs-below-overlayfs",
        include_str!("../../kernel/5.10/patches/0005-hostfs-below-overlayfs.patch"),
    ),
    (
        "0006-um-lab-descriptors",
        include_str!("../../kernel/5.10/patches/0006-um-lab-descriptors.patch"),
    ),
    (
        "0007-time-the-transforms",
        include_str!("../../kernel/5.10/patches/0007-time-the-transforms.patch"),
    ),
];

const V6_1_PATCHES: &[Patch] = &[
    (
        "0001-mtd-without-iomem",
        include_str!("../../kernel/6.1/patches/0001-mtd-without-iomem.patch"),
    ),
    (
        "0002-um-keep-wide-registers",
        include_str!("../../kernel/6.1/patches/0002-um-keep-wide-registers.patch"),
    ),
    (
        "0003-um-leave-nothing-behind",
        include_str!("../../kernel/6.1/patches/0003-um-leave-nothing-behind.patch"),
    ),
    (
        "0004-um-account-cpu-time-by-the-clock",
        include_str!("../../kernel/6.1/patches/0004-um-account-cpu-time-by-the-clock.patch"),
    ),
    (
        "0006-um-lab-descriptors",
        include_str!("../../kernel/6.1/patches/0006-um-lab-descriptors.patch"),
    ),
    (
        "0007-time-the-transforms",
        include_str!("../../kernel/6.1/patches/0007-time-the-transforms.patch"),
    ),
];

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
    fn keys_are_names_and_differ() {
        let keys = Version::ALL.map(Version::sources_key);
        for key in &keys {
            assert_eq!(key.len(), 16);
            assert!(key.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn sources_are_those_of_the_version() {
        for version in Version::ALL {
            assert!(version.package().ends_with(version.name()));
            assert!(version.release().starts_with(version.name()));
        }
    }

    #[test]
    fn every_patch_is_listed_and_says_its_licence() {
        for version in Version::ALL {
            let folder = format!("{}/kernel/{version}/patches", env!("CARGO_MANIFEST_DIR"));
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            let listed: Vec<String> = version
                .patches()
                .iter()
                .map(|(name, _)| format!("{name}.patch"))
                .collect();
            assert_eq!(files, listed);
            for (name, patch) in version.patches() {
                assert!(
                    patch.starts_with("SPDX-License-Identifier: GPL-2.0\n"),
                    "{version} {name}"
                );
            }
        }
    }
}
