//! [`Simulated`]: a drive that is not here as a system under test, in virtual
//! time.
//!
//! Nothing is encrypted and nothing kept: how long it takes is known, and only
//! that counts. Every visit begins with the drive as it was opened, so that no
//! system finds what another one has left.

use crate::clock::Clock;
use crate::error::LabError;
use crate::record::Device;
use block::NullDevice;
use bytesize::ByteSize;
use drive::DriveError;
use drive::demand::Drive;
use drive::preset::Preset;
use drive::ssd::Ssd;
pub use drive::{Driver, Processor, SimulatedDevice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

/// The prefix of the names of simulated drives.
pub const DRIVE: &str = "drive:";

/// A name that does not stand for a possible drive, or a drive that is too small.
pub(super) fn impossible(name: &str, source: DriveError) -> LabError {
    LabError::invalid(format!("{name}: {source}"), source.remedy()).because(source)
}

/// The user asked to stop while a drive was filled.
pub(super) fn interrupted() -> LabError {
    LabError::interrupted("Nothing was measured. A smaller size is filled sooner.")
}

/// A drive that ships, or one in a file that ends in .toml.
///
/// # Errors
/// [`LabError`].
pub fn preset(name: &str) -> Result<Preset, LabError> {
    Preset::parse(&toml(name)?).map_err(|source| impossible(name, source))
}

/// The same, of which the flash wears and discards reach it.
///
/// # Errors
/// [`LabError`].
pub fn ssd(name: &str) -> Result<Ssd, LabError> {
    match preset(name)? {
        Preset::Ssd(ssd) => Ok(ssd),
        Preset::Hdd(_) => Err(LabError::invalid(
            format!("{name} is a disk, and discards and erases have no effect on a disk"),
            "Choose an SSD from `cryptmark drive list`.",
        )),
        Preset::Flash(_) => Err(LabError::invalid(
            format!("{name} does not support TRIM, so all setups wear it alike"),
            format!("`cryptmark drive run --device {name}` shows how it wears."),
        )),
    }
}

/// The TOML of a drive that ships, or the file that ends in .toml.
///
/// # Errors
/// [`LabError`].
pub fn toml(name: &str) -> Result<String, LabError> {
    if !name.ends_with(".toml") {
        return Ok(Preset::toml(name)?.to_owned());
    }
    std::fs::read_to_string(name).map_err(|source| {
        let remedy = "Give the TOML file of a drive, or a name from `cryptmark drive list`.";
        LabError::invalid(format!("cannot read {name}"), remedy).because(source)
    })
}

/// `size`, or more if [`Simulated::whole`] needs more of the drive.
///
/// # Errors
/// The errors of [`preset`].
pub fn whole_size(name: &str, size: ByteSize) -> Result<ByteSize, LabError> {
    Ok(match preset(name)? {
        Preset::Ssd(ssd) if size < ssd.least_capacity() => {
            enough(ssd.least_capacity()).min(ssd.capacity)
        }
        _ => size,
    })
}

/// Rounded up, so that it is enough when it is cut to whole blocks.
fn enough(least: ByteSize) -> ByteSize {
    ByteSize::mb(least.as_u64().div_ceil(100_000_000) * 100)
}

/// The beginning of a drive, which was written once, in order.
pub struct Simulated {
    name: String,
    drive: Box<dyn Drive>,
    size: u64,
}

impl Simulated {
    /// The first `size` bytes of the drive with a name that [`preset`] knows. `filling` gets the
    /// bytes written to the drive so far, and may end the filling.
    ///
    /// # Errors
    /// [`LabError`], also if `filling` ended it.
    pub fn open(
        name: &str,
        size: u64,
        seed: u64,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        Self::filled(preset(name)?, name, size, seed, filling)
    }

    /// A drive of `size` bytes and the same numbers for all else, so that all of
    /// an SSD can be written: what it copies for every write depends on the share
    /// of its spare blocks, not on how many there are.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn whole(
        name: &str,
        size: u64,
        seed: u64,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let preset = match preset(name)? {
            Preset::Ssd(ssd) => {
                let least = ssd.least_capacity();
                if size < least.as_u64() {
                    return Err(LabError::invalid(
                        format!(
                            "{name} with {} has too few spare blocks to be written completely",
                            ByteSize::b(size).display().si()
                        ),
                        format!(
                            "Choose a size of {}MB or more. It takes no space on this machine.",
                            enough(least).as_u64() / 1_000_000
                        ),
                    ));
                }
                Preset::Ssd(Ssd {
                    capacity: ByteSize::b(size.min(ssd.capacity.as_u64())),
                    ..ssd
                })
            }
            other => other,
        };
        Self::filled(preset, name, size, seed, filling)
    }

    fn filled(
        preset: Preset,
        name: &str,
        size: u64,
        seed: u64,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let told = |source| impossible(name, source);
        let drive = preset.filled(size, seed, filling).map_err(told)?;
        let drive = drive.ok_or_else(interrupted)?;
        let simulated = Self {
            name: name.to_owned(),
            drive,
            size,
        };
        // Fits now, fits always.
        simulated.try_device(None).map_err(told)?;
        Ok(simulated)
    }

    /// The drive's description for a record.
    pub fn description(&self) -> Device {
        description(&self.name, self.size)
    }

    /// The drive at rest, behind a processor that takes time for what it is to
    /// encrypt.
    pub fn device(&self, processor: Option<Processor>) -> SimulatedDevice<NullDevice> {
        let device = self.try_device(processor);
        device.expect("it was tried when it was opened")
    }

    fn try_device(
        &self,
        processor: Option<Processor>,
    ) -> Result<SimulatedDevice<NullDevice>, DriveError> {
        let nowhere = NullDevice::new(self.size);
        SimulatedDevice::new(self.drive.duplicate(), nowhere, processor)
    }
}

/// `cores` behind a driver that encrypt at `mb_s` each, 10⁶ bytes a second.
///
/// # Errors
/// [`LabError`] if the rate is invalid, or the driver cannot use `cores` cores.
pub fn processor(driver: Driver, cores: NonZeroU32, mb_s: f64) -> Result<Processor, LabError> {
    Ok(Processor::new(driver, cores, mb_s)?)
}

/// The description for a record of `size` bytes of the drive `name`.
pub fn description(name: &str, size: u64) -> Device {
    Device {
        kind: "simulated".to_owned(),
        model: Some(name.to_owned()),
        path_kind: "block-device".to_owned(),
        cache: "direct".to_owned(),
        engine: "virtual time".to_owned(),
        size,
        ..Device::default()
    }
}

/// The clock of simulated drives.
pub fn clock() -> Clock {
    Clock::virtual_time(drive::time::now)
}

/// How fast one core encrypts, 10⁶ bytes a second; written as `145MB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CipherRate(pub f64);

impl std::str::FromStr for CipherRate {
    type Err = NoRate;

    fn from_str(text: &str) -> Result<Self, NoRate> {
        // As programs print rates; in units of 10⁶ bytes a second.
        const UNITS: [(&str, f64); 5] = [
            ("KiB/s", 1024.0 / 1e6),
            ("MiB/s", 1.048576),
            ("GiB/s", 1073.741824),
            ("MB/s", 1.0),
            ("GB/s", 1000.0),
        ];
        let read = |(unit, megabytes): (&str, f64)| {
            let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
            Some(number * megabytes)
        };
        match UNITS.into_iter().find_map(read) {
            Some(rate) if rate > 0.0 && rate.is_finite() => Ok(Self(rate)),
            _ => Err(NoRate(text.to_owned())),
        }
    }
}

impl TryFrom<String> for CipherRate {
    type Error = NoRate;

    fn try_from(text: String) -> Result<Self, NoRate> {
        text.parse()
    }
}

impl From<CipherRate> for String {
    fn from(rate: CipherRate) -> Self {
        format!("{}MB/s", rate.0)
    }
}

/// A word that is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a rate; write it like 145MB/s")]
pub struct NoRate(String);

/// The rate that was given for a cipher, by its notation or by its name alone:
/// `aes` is `aes-xts-plain64`, and no cascade; Adiantum, most of which is its
/// stream cipher, is `xchacha12` or `xchacha20`.
pub fn rate_of<'a>(
    cipher: &super::Encryption,
    rates: &'a BTreeMap<String, CipherRate>,
) -> Option<(&'a str, CipherRate)> {
    let notation = cipher.spec.to_string();
    let name = name_of(cipher);
    let given = rates.iter().find(|(given, _)| **given == notation);
    let given = given.or_else(|| rates.iter().find(|(given, _)| **given == name));
    given.map(|(given, rate)| (given.as_str(), *rate))
}

/// The name by which a rate is given for a cipher.
pub fn name_of(cipher: &super::Encryption) -> String {
    let notation = cipher.spec.to_string();
    let names: Vec<&str> = cipher.spec.algorithms().iter().map(|a| a.name()).collect();
    match notation.split_once(',') {
        Some((stream, _)) => stream.to_owned(),
        None => names.join("-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Encryption;

    #[test]
    fn rates_are_read_in_the_units_that_programs_print() {
        for (text, rate) in [
            ("145MB/s", Some(145.0)),
            ("24MiB/s", Some(25.165824)),
            ("1.5 GB/s", Some(1500.0)),
            ("2GiB/s", Some(2147.483648)),
            ("500KiB/s", Some(0.512)),
            ("145", None),
            ("-1MB/s", None),
            ("infMB/s", None),
        ] {
            let read = text.parse::<CipherRate>().ok();
            assert_eq!(read.map(|read| read.0), rate, "{text}");
        }
    }

    /// Adiantum is not AES: it is meant for processors without AES instructions.
    #[test]
    fn a_rate_is_for_one_cipher() {
        let rates = BTreeMap::from([
            ("aes".to_owned(), CipherRate(100.0)),
            ("xchacha12".to_owned(), CipherRate(600.0)),
        ]);
        let rate = |notation: &str| {
            let encryption = Encryption::parse(notation, None, 4096, None).unwrap();
            rate_of(&encryption, &rates).map(|(_, rate)| rate.0)
        };
        assert_eq!(rate("aes-xts-plain64"), Some(100.0));
        assert_eq!(rate("xchacha12,aes-adiantum-plain64"), Some(600.0));
        assert_eq!(rate("xchacha20,aes-adiantum-plain64"), None);
        assert_eq!(rate("aes-twofish-serpent-xts-plain64"), None);
    }
}
