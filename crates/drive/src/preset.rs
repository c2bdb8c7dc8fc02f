//! [`Preset`]: drives that ship, and drives of the user's own, each number with
//! where it comes from.

use crate::DriveError;
use crate::demand::Drive;
use crate::flash::{FlashDrive, FlashPreset};
use crate::fragmented::Fragmented;
use crate::ftl::Policy;
use crate::hdd::{Hdd, HddPreset};
use crate::ssd::{Ssd, SsdDrive};
use bytesize::ByteSize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Name and TOML of each drive.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../presets/", $name, ".toml")))),*]
    };
}

/// Drives that ship.
const SHIPPED: &[(&str, &str)] = shipped!(
    "mlc-128g",
    "tlc-1t",
    "nvme-1t-2023",
    "nvme-1t-2025",
    "emmc-64g",
    "sd-64g",
    "hdd-desktop-2003",
    "hdd-laptop-2003",
    "hdd-wd",
    "sshd-seagate",
    "ssd-samsung-128g",
    "ssd-x25m-160g",
    "flash-key-128m",
    "mtd-nand-128m",
    "mtd-nor-16m",
);

/// Of a large SSD so many times the extent is simulated: all that is written to
/// the extent goes into erased blocks there as it would on the whole drive.
const ENOUGH: u64 = 8;

/// No less of it is simulated, bytes: blocks are large, and cleaning needs several.
pub(crate) const LEAST: u64 = 8_000_000_000;

/// Bytes that are filled between two reports: a blink of an eye's.
const STRETCH: u64 = 256 << 20;

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Flash behind a translation layer.
    Ssd,
    /// A turning disk.
    Hdd,
    /// A turning disk with flash that learns.
    Sshd,
    /// A flash chip with little or nothing over it.
    Flash,
}

/// A rate that limits nothing, 10⁶ bytes a second.
pub(crate) fn no_limit() -> f64 {
    999_999.0
}

/// The numbers of a drive.
#[derive(Clone, Debug, PartialEq)]
pub enum Preset {
    /// Flash behind a translation layer.
    Ssd(Ssd),
    /// A turning disk, with flash or without.
    Hdd(HddPreset),
    /// A flash chip with little or nothing over it.
    Flash(FlashPreset),
}

impl Preset {
    /// Names of the drives that ship with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// A drive that ships.
    ///
    /// # Errors
    /// [`DriveError::NoPreset`].
    pub fn named(name: &str) -> Result<Self, DriveError> {
        Self::parse(Self::toml(name)?)
    }

    /// The TOML of a drive that ships.
    ///
    /// # Errors
    /// [`DriveError::NoPreset`].
    pub fn toml(name: &str) -> Result<&'static str, DriveError> {
        let found = SHIPPED.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, toml)| *toml)
            .ok_or_else(|| DriveError::NoPreset {
                name: name.to_owned(),
            })
    }

    /// Reads a drive's TOML.
    ///
    /// # Errors
    /// [`DriveError::Toml`] names the line; [`DriveError::OutOfRange`] the
    /// number; [`DriveError::NoSpare`].
    pub fn parse(toml: &str) -> Result<Self, DriveError> {
        /// The part of the TOML that says how to read the rest.
        #[derive(Deserialize)]
        struct Which {
            kind: Kind,
        }
        match read::<Which>(toml)?.kind {
            Kind::Ssd => Ok(Self::Ssd(read::<Ssd>(toml)?.checked()?)),
            Kind::Flash => Ok(Self::Flash(read::<FlashPreset>(toml)?.checked()?)),
            Kind::Hdd | Kind::Sshd => {
                let preset: HddPreset = read(toml)?;
                Ok(Self::Hdd(Hdd::new(preset)?.preset().clone()))
            }
        }
    }

    /// A drive at rest, whose first `extent` bytes were written once, in order.
    ///
    /// # Errors
    /// [`DriveError::TooSmall`] where the extent is larger than the drive;
    /// [`DriveError::NoSpare`], [`DriveError::Memory`].
    pub fn drive(&self, extent: u64, seed: u64) -> Result<Box<dyn Drive>, DriveError> {
        let drive = self.filled(extent, seed, &mut |_| ControlFlow::Continue(()))?;
        Ok(drive.expect("nobody ends it"))
    }

    /// The same, of which `report` is told the bytes written so far, and may end it.
    ///
    /// # Errors
    /// As [`drive`](Self::drive); `Ok(None)` where `report` ended it.
    pub fn filled(
        &self,
        extent: u64,
        seed: u64,
        report: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Box<dyn Drive>>, DriveError> {
        let capacity = self.capacity();
        if extent > capacity {
            return Err(DriveError::TooSmall {
                capacity,
                needed: extent,
            });
        }
        match self {
            Self::Hdd(preset) => {
                let disk = Box::new(Hdd::new(preset.clone())?);
                Ok(Some(match preset.placement {
                    None => disk,
                    Some(placement) => Box::new(Fragmented::new(disk, extent, placement, seed)?),
                }))
            }
            Self::Flash(preset) => {
                let mut drive = FlashDrive::new(preset.clone())?;
                drive.fill(extent);
                Ok(Some(Box::new(drive)))
            }
            Self::Ssd(ssd) => {
                let least = ssd.least_capacity().as_u64();
                let enough = extent.saturating_mul(ENOUGH).max(LEAST).max(least);
                let ssd = Ssd {
                    capacity: ByteSize::b(enough.min(capacity)),
                    ..ssd.clone()
                };
                let mut drive = SsdDrive::new(&ssd, Policy::Greedy, seed)?;
                let extent = extent.min(drive.capacity());
                let mut filled = 0;
                while filled < extent {
                    if report(filled).is_break() {
                        return Ok(None);
                    }
                    let next = STRETCH.min(extent - filled);
                    drive.fill(filled, next);
                    filled += next;
                }
                Ok(Some(Box::new(drive)))
            }
        }
    }

    /// Bytes of the whole drive.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Ssd(ssd) => ssd.capacity.as_u64(),
            Self::Hdd(hdd) => hdd.capacity.as_u64(),
            Self::Flash(flash) => flash.capacity.as_u64(),
        }
    }

    /// One line for the list of drives.
    pub fn title(&self) -> &str {
        match self {
            Self::Ssd(ssd) => &ssd.title,
            Self::Hdd(hdd) => &hdd.title,
            Self::Flash(flash) => &flash.title,
        }
    }
}

fn read<T: DeserializeOwned>(toml: &str) -> Result<T, DriveError> {
    toml::from_str(toml).map_err(|error| DriveError::Toml {
        line: error
            .span()
            .map(|span| 1 + toml[..span.start].matches('\n').count()),
        message: error.message().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every number of every drive that ships says where it comes from.
    #[test]
    fn numbers_have_sources() {
        for name in Preset::names() {
            let preset = Preset::named(name).expect(name);
            let sources = match &preset {
                Preset::Ssd(ssd) => &ssd.sources,
                Preset::Hdd(hdd) => &hdd.sources,
                Preset::Flash(flash) => &flash.sources,
            };
            let toml: toml::Table = Preset::toml(name).expect(name).parse().expect("TOML");
            let numbers = |table: &toml::Table| {
                let plain = ["title", "kind", "sources", "nand"];
                let keys = table.keys().filter(|key| !plain.contains(&key.as_str()));
                keys.cloned().collect::<BTreeSet<String>>()
            };
            let named: BTreeSet<String> = sources.keys().cloned().collect();
            assert_eq!(named, numbers(&toml), "{name}");
            if let Preset::Hdd(HddPreset {
                nand: Some(nand), ..
            }) = &preset
            {
                let named: BTreeSet<String> = nand.sources.keys().cloned().collect();
                let nand = toml["nand"].as_table().expect("it is a table");
                assert_eq!(named, numbers(nand), "{name}");
            }
        }
    }

    #[test]
    fn faults_are_named() {
        let with = |name, from: &str, to: &str| {
            let toml = Preset::toml(name).expect("it ships");
            assert!(toml.contains(from), "{from}");
            let error = Preset::parse(&toml.replacen(from, to, 1)).expect_err(to);
            error.to_string()
        };
        let ssd = |from, to| with("mlc-128g", from, to);
        assert!(ssd("page = ", "pages = ").contains("line 5"));
        assert!(ssd("over_provisioning = 0.0737", "over_provisioning = 0").contains("over-prov"));
        assert!(ssd("erase_cycles = 3000", "erase_cycles = 0").contains("erase_cycles"));
        assert!(ssd("capacity = \"128 GB\"", "capacity = \"1 MB\"").contains("blocks"));
        assert!(ssd("kind = \"ssd\"", "kind = \"tape\"").contains("line 2"));
        let hdd = |from, to| with("hdd-desktop-2003", from, to);
        assert!(hdd("rpm = 5400", "rpm = 0").contains("rpm"));
        assert!(hdd("queue = \"elevator\"", "queue = \"lift\"").contains("line 15"));
        let key = |from, to| with("flash-key-128m", from, to);
        assert!(key("page = \"2 KiB\"", "page = \"3 KiB\"").contains("page"));
        assert!(key("page = \"2 KiB\"", "page = \"1 MiB\"").contains("page"));
        assert!(key("pages_per_block = 64", "pages_per_block = 0").contains("pages_per_block"));
        assert!(key("blocks = 1004", "blocks = 1").contains("blocks"));
        assert!(key("blocks = 1004", "blocks = 4294967295").contains("blocks"));
        // 977 blocks hold 128 MB, and one must be erased.
        assert!(key("blocks = 1004", "blocks = 977").contains("spare"));
        assert!(key("blocks = 1004", "blocks = 976").contains("capacity"));
        assert!(key("capacity = \"128 MB\"", "capacity = \"1 kB\"").contains("capacity"));
        assert!(key("erase_ms = 2", "erase_ms = 0").contains("erase_ms"));
        assert!(key("command_us = 375", "command_us = nan").contains("command_us"));
        assert!(key("layer = \"block-mapped\"", "layer = \"ubi\"").contains("line 3"));
        assert!(key("interface_mb_s", "interface_mbs").contains("line"));
    }
}
