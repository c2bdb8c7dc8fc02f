//! [`Living`]: a simulated SSD that grows old under a file system, and what it is
//! like to use then.

use super::simulated;
use crate::error::LabError;
use crate::record::TrimPolicy;
use block::{BlockDevice, NullDevice};
use drive::DriveError;
use drive::demand::Drive;
use drive::ftl::Policy;
use drive::lifetime::{BLOCKS, Life, Setup};
use drive::ssd::Ssd;
use drive::{Processor, SimulatedDevice};
use std::ops::ControlFlow;

/// The use of an SSD, and its settings beyond the drive's own numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// Pages beyond those that the host can write; the drive's own when absent.
    pub over_provisioning: Option<f64>,
    /// Which block is cleaned, by the name that `drive run --gc` takes.
    pub gc: String,
    /// Share of the file system that holds files.
    pub fill: f64,
    /// Share of the writes that goes to pages within files.
    pub overwrites: f64,
    /// Bytes that the host writes a day.
    pub daily: u64,
    /// Length of the simulated life, years.
    pub years: f64,
    /// Share of the drive that [`TrimPolicy::Unpartitioned`] leaves.
    pub unpartitioned: f64,
}

/// An SSD that grows old under a file system.
#[derive(Clone, Debug)]
pub struct Living {
    ssd: Ssd,
    policy: Policy,
    by: Use,
}

/// The outcome of a life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Flash writes ÷ host writes over all the years.
    pub write_amplification: f64,
    /// Time until the blocks have reached their erase limit, years.
    pub lifetime_years: f64,
    /// Bytes that the host has written by then, in units of 10¹² bytes.
    pub terabytes_written: f64,
}

/// The files on a drive that has been written for a while, one after the other.
pub struct Aged {
    drive: Box<dyn Drive>,
}

impl Living {
    /// The SSD with a name that [`simulated::preset`] knows.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn new(device: &str, by: Use) -> Result<Self, LabError> {
        let told = |source: DriveError| simulated::impossible(device, source);
        let mut ssd = simulated::ssd(device)?;
        if let Some(share) = by.over_provisioning {
            ssd.over_provisioning = share;
        }
        let ssd = ssd.checked().map_err(told)?;
        let policy = by.gc.parse().map_err(told)?;
        Ok(Self { ssd, policy, by })
    }

    /// Pages beyond those that the host can write.
    pub fn over_provisioning(&self) -> f64 {
        self.ssd.over_provisioning
    }

    /// Bytes of the whole drive.
    pub fn capacity(&self) -> u64 {
        self.ssd.capacity.as_u64()
    }

    /// Whether it can live so at all.
    ///
    /// # Errors
    /// [`LabError`] names the number that is impossible.
    pub fn check(&self, policy: TrimPolicy) -> Result<(), LabError> {
        Ok(self.life(0).check(self.setup(policy))?)
    }

    fn life(&self, seed: u64) -> Life<'_> {
        Life {
            ssd: &self.ssd,
            blocks: BLOCKS,
            policy: self.policy,
            daily: self.by.daily,
            fill: self.by.fill,
            overwrites: self.by.overwrites,
            years: self.by.years,
            compression: 1.0,
            seed,
        }
    }

    fn setup(&self, policy: TrimPolicy) -> Setup {
        match policy {
            TrimPolicy::Plain => Setup::Plain,
            TrimPolicy::Pass => Setup::Passed,
            TrimPolicy::Block => Setup::Blocked,
            TrimPolicy::Filled => Setup::Filled,
            TrimPolicy::Unpartitioned => Setup::Unpartitioned {
                left: self.by.unpartitioned,
            },
        }
    }

    /// Lives until it is worn, and makes a drive of the same age to be used; the same seed gives
    /// the same. `report` gets the share that is done, and may end the life.
    ///
    /// # Errors
    /// [`LabError`] names the number that is impossible;
    /// [`LabError`], also if `report` ended it.
    pub fn live(
        &self,
        policy: TrimPolicy,
        seed: u64,
        report: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(Outcome, Aged), LabError> {
        let (life, setup) = (self.life(seed), self.setup(policy));
        let lived = life.live(setup, &mut |_| report())?;
        let lived = lived.ok_or_else(simulated::interrupted)?;
        let drive = life.aged(setup, &mut |_| report())?;
        let outcome = Outcome {
            write_amplification: lived.write_amplification,
            lifetime_years: lived.lifetime_years,
            terabytes_written: lived.terabytes_written,
        };
        let drive = drive.ok_or_else(simulated::interrupted)?;
        Ok((outcome, Aged { drive }))
    }
}

impl Aged {
    /// The files at rest, behind a processor that takes time for what it is to encrypt.
    ///
    /// # Errors
    /// None that a drive which is as large as its content has.
    pub fn device(&self, processor: Option<Processor>) -> Result<impl BlockDevice, LabError> {
        let nowhere = NullDevice::new(self.drive.capacity());
        Ok(SimulatedDevice::new(
            self.drive.duplicate(),
            nowhere,
            processor,
        )?)
    }
}
