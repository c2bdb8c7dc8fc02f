//! [`Ssd`]: the numbers of a drive, each with where it comes from.

use crate::DriveError;
use crate::ftl::Layout;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Drives that ship: name and TOML.
const SHIPPED: &[(&str, &str)] = &[
    ("mlc-128g", include_str!("../presets/mlc-128g.toml")),
    ("tlc-1t", include_str!("../presets/tlc-1t.toml")),
];

/// A solid-state drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssd {
    /// One line for the list of drives.
    pub title: String,
    /// Which kind of drive; there is one so far.
    pub kind: Kind,
    /// What the host can write.
    pub capacity: ByteSize,
    /// Pages beyond those, 0.07 for 7 %.
    pub over_provisioning: f64,
    /// Bytes that are written at once.
    pub page: ByteSize,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Channels between controller and flash.
    pub channels: u32,
    /// Chips on each channel.
    pub chips_per_channel: u32,
    /// Reading a page from its cells, microseconds.
    pub read_us: f64,
    /// Writing a page to its cells, microseconds.
    pub program_us: f64,
    /// Erasing a block, milliseconds.
    pub erase_ms: f64,
    /// Rate of a channel, 10⁶ bytes a second.
    pub channel_mb_s: f64,
    /// Rate between host and drive, 10⁶ bytes a second.
    pub interface_mb_s: f64,
    /// Erases that a block endures.
    pub erase_cycles: u32,
    /// Where each number comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Flash behind a translation layer.
    Ssd,
}

impl Ssd {
    /// Drives that ship with the program, each with its title.
    pub fn shipped() -> impl Iterator<Item = (&'static str, Self)> {
        let parsed = |toml| Self::parse(toml).expect("what ships is tested");
        SHIPPED
            .iter()
            .map(move |(name, toml)| (*name, parsed(toml)))
    }

    /// The TOML of a drive that ships.
    ///
    /// # Errors
    /// [`DriveError::Unknown`].
    pub fn toml(name: &str) -> Result<&'static str, DriveError> {
        let found = SHIPPED.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, toml)| *toml)
            .ok_or_else(|| DriveError::Unknown {
                what: "drive",
                given: name.to_owned(),
                known: "those of `cryptmark drive list`, and files that end in .toml",
            })
    }

    /// Reads a drive's TOML.
    ///
    /// # Errors
    /// [`DriveError::Toml`] names the line; [`DriveError::OutOfRange`] the number.
    pub fn parse(toml: &str) -> Result<Self, DriveError> {
        let ssd: Self = toml::from_str(toml).map_err(|error| DriveError::Toml {
            line: error
                .span()
                .map(|span| 1 + toml[..span.start].matches('\n').count()),
            message: error.message().to_owned(),
        })?;
        ssd.layout(u32::MAX)?;
        for (name, value) in [
            ("read_us", ssd.read_us),
            ("program_us", ssd.program_us),
            ("erase_ms", ssd.erase_ms),
            ("channel_mb_s", ssd.channel_mb_s),
            ("interface_mb_s", ssd.interface_mb_s),
            ("channels", f64::from(ssd.channels)),
            ("chips_per_channel", f64::from(ssd.chips_per_channel)),
            ("erase_cycles", f64::from(ssd.erase_cycles)),
        ] {
            if !(value > 0.0 && value < 1e9) {
                return Err(DriveError::OutOfRange {
                    name,
                    value: value.to_string(),
                    possible: "more than 0, and less than 1000000000",
                });
            }
        }
        Ok(ssd)
    }

    /// Its pages and blocks, or as many blocks as `most` with the same shares.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn layout(&self, most: u32) -> Result<Layout, DriveError> {
        let block = self.page.as_u64().max(1) as f64 * f64::from(self.pages_per_block.max(1));
        let physical = self.capacity.as_u64() as f64 * (1.0 + self.over_provisioning);
        let blocks = (physical / block).round().min(f64::from(most));
        Layout::new(blocks as u32, self.pages_per_block, self.over_provisioning)
    }

    /// What it can write for ever, 10⁶ bytes a second, while it writes
    /// `amplification` times what the host does: all chips at work, or all
    /// channels, or the interface.
    pub fn write_mb_s(&self, amplification: f64) -> f64 {
        let page = self.page.as_u64() as f64;
        let copied = amplification - 1.0;
        // Of one page of the host, on one chip.
        let erase_us = self.erase_ms * 1e3 / f64::from(self.pages_per_block);
        let busy_us = amplification * (self.program_us + erase_us) + copied * self.read_us;
        let chips = f64::from(self.channels) * f64::from(self.chips_per_channel);
        let by_chips = chips * page / busy_us;
        // What is copied crosses the channel twice.
        let by_channels = f64::from(self.channels) * self.channel_mb_s / (1.0 + 2.0 * copied);
        by_chips.min(by_channels).min(self.interface_mb_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of every drive that ships says where it comes from.
    #[test]
    fn numbers_have_sources() {
        for (name, ssd) in Ssd::shipped() {
            let toml: toml::Table = Ssd::toml(name).expect("it ships").parse().expect("TOML");
            for key in toml
                .keys()
                .filter(|key| !["title", "kind", "sources"].contains(&key.as_str()))
            {
                assert!(ssd.sources.contains_key(key), "{name}: {key}");
            }
            assert_eq!(ssd.sources.len(), toml.len() - 3, "{name}");
        }
    }

    #[test]
    fn rates_fall_with_amplification() {
        let (_, ssd) = Ssd::shipped().next().expect("a drive");
        assert!(ssd.write_mb_s(1.0) > ssd.write_mb_s(2.0));
        // 32 chips, 8 KiB each 750 us and 1/256 of 3.8 ms.
        let expected = 32.0 * 8192.0 / (750.0 + 3800.0 / 256.0);
        assert!((ssd.write_mb_s(1.0) - expected).abs() < 1e-9);
    }

    #[test]
    fn faults_are_named() {
        let toml = Ssd::toml("mlc-128g").expect("it ships");
        let with = |from: &str, to: &str| {
            Ssd::parse(&toml.replacen(from, to, 1))
                .expect_err(to)
                .to_string()
        };
        assert!(
            with("page = ", "pages = ").contains("line 5"),
            "{}",
            with("page = ", "pages = ")
        );
        assert!(
            with("over_provisioning = 0.0737", "over_provisioning = 0")
                .contains("over-provisioning")
        );
        assert!(with("erase_cycles = 3000", "erase_cycles = 0").contains("erase_cycles"));
        assert!(with("capacity = \"128 GB\"", "capacity = \"1 MB\"").contains("blocks"));
    }
}
