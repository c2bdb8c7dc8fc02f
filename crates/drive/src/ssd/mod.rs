//! [`Ssd`]: the numbers of a solid-state drive; [`SsdDrive`]: the drive at work.

mod at_work;

pub use at_work::SsdDrive;

use crate::DriveError;
use crate::ftl::Layout;
use crate::preset::Kind;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A solid-state drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssd {
    /// One line for the list of drives.
    pub title: String,
    /// `ssd`.
    pub kind: Kind,
    /// The capacity that the host can write.
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
    /// Of a command beside all that moves, microseconds.
    pub command_us: f64,
    /// Reads that the controller takes in a second at most; `None` where the other numbers limit
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Writes, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Memory for what is written; a write is done when it is there.
    pub cache: ByteSize,
    /// Erases that a block endures.
    pub erase_cycles: u32,
    /// Where each number comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl Ssd {
    /// The same, where its numbers are possible.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number; [`DriveError::NoSpare`].
    pub fn checked(self) -> Result<Self, DriveError> {
        self.layout(u32::MAX)?;
        for (name, value) in [
            ("read_us", self.read_us),
            ("program_us", self.program_us),
            ("erase_ms", self.erase_ms),
            ("channel_mb_s", self.channel_mb_s),
            ("interface_mb_s", self.interface_mb_s),
            ("command_us", self.command_us),
            ("channels", f64::from(self.channels)),
            ("chips_per_channel", f64::from(self.chips_per_channel)),
            ("erase_cycles", f64::from(self.erase_cycles)),
            ("read_iops", self.read_iops.unwrap_or(1.0)),
            ("write_iops", self.write_iops.unwrap_or(1.0)),
        ] {
            // Slower than that, one request lasts longer than the clock.
            let is_rate = name.ends_with("mb_s") || name.ends_with("iops");
            let fits = value > 0.0 && value < 1e9 && (value >= 0.001 || !is_rate);
            DriveError::require(
                fits,
                name,
                value,
                "more than 0 (of rates, 0.001 at least), and less than 1000000000",
            )?;
        }
        Ok(self)
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

    /// The smallest capacity, bytes, at which a drive of its kind has enough spare blocks for
    /// cleaning. Every chip needs one open block, one erased block and one to clean.
    pub fn least_capacity(&self) -> ByteSize {
        let chips = f64::from(self.channels) * f64::from(self.chips_per_channel);
        let block = self.page.as_u64() as f64 * f64::from(self.pages_per_block);
        ByteSize::b((3.0 * chips * block / self.over_provisioning) as u64)
    }

    /// The rate that the drive can write at forever, 10⁶ bytes a second, if it writes
    /// `amplification` times as much as the host. The limit is all chips, all channels, or the
    /// interface.
    pub fn write_mb_s(&self, amplification: f64) -> f64 {
        let page = self.page.as_u64() as f64;
        let copied = amplification - 1.0;
        // Of one page of the host, on one chip.
        let erase_us = self.erase_ms * 1e3 / f64::from(self.pages_per_block);
        let busy_us = amplification * (self.program_us + erase_us) + copied * self.read_us;
        let chips = f64::from(self.channels) * f64::from(self.chips_per_channel);
        let by_chips = chips * page / busy_us;
        // A copied page crosses the channel twice.
        let by_channels = f64::from(self.channels) * self.channel_mb_s / (1.0 + 2.0 * copied);
        by_chips.min(by_channels).min(self.interface_mb_s)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ssd, SsdDrive};
    use crate::ftl::Policy;
    use crate::preset::Preset;

    #[test]
    fn rates_fall_with_amplification() {
        let Ok(Preset::Ssd(ssd)) = Preset::named("mlc-128g") else {
            panic!("it is an SSD");
        };
        assert!(ssd.write_mb_s(1.0) > ssd.write_mb_s(2.0));
        // 32 chips, 8 KiB each 750 us and 1/256 of 3.8 ms.
        let expected = 32.0 * 8192.0 / (750.0 + 3800.0 / 256.0);
        assert!((ssd.write_mb_s(1.0) - expected).abs() < 1e-9);
    }

    /// Every SSD that ships works at the size that is called its least.
    #[test]
    fn the_least_capacity_has_blocks_to_spare() {
        for name in Preset::names() {
            let Ok(Preset::Ssd(ssd)) = Preset::named(name) else {
                continue;
            };
            let capacity = ssd.least_capacity();
            assert!(capacity < ssd.capacity, "{name}");
            let least = Ssd { capacity, ..ssd };
            let drive = SsdDrive::new(&least, Policy::Greedy, 1);
            assert!(drive.is_ok(), "{name}: {:?}", drive.err());
        }
    }
}
