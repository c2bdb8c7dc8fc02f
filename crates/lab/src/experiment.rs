//! [`Experiment`]: what is to be measured, as data, one TOML file each.
//!
//! Each kind is a type with its own fields. It says what can be chosen for it, what it will do in
//! words, and how a session measures it. The program's options, plans, shards, the window and
//! Python make the same value by [`Experiment::load`] and [`Experiment::changed`]. The experiments
//! that ship are embedded in the program.

mod changes;
mod ciphers;
mod derivations;
mod devices;
mod encryptions;
mod error;
pub mod file_systems;
mod lives;
mod schedule;
mod settings;
mod shipped;
mod words;

pub use changes::Changes;
pub use ciphers::Ciphers;
pub use derivations::Derivations;
pub(crate) use derivations::workload as derivation_workload;
pub use devices::Devices;
pub(crate) use devices::are_drives;
pub use encryptions::Sizes;
pub(crate) use error::syntax;
pub use error::unused_rate;
pub use file_systems::FileSystems;
pub(crate) use lives::of_drive;
pub use lives::{Lives, NoShare, Place, Share};
pub use schedule::{Schedule, Until};
pub use settings::Setting;
pub(crate) use shipped::read;
pub use shipped::{other_names, shipped, toml};

use crate::error::LabError;
use crate::record::Tier;
use crate::system::SystemId;
use crate::workload::Workload;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Workloads or operations of a plan, at most. Their names are compared with others.
const MOST_CELLS: u64 = 1000;

/// An experiment of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    /// Ciphers in memory.
    Ciphers(Ciphers),
    /// Block devices, real or simulated.
    Devices(Devices),
    /// The key derivations of the volume formats.
    Derivations(Derivations),
    /// File systems.
    FileSystems(FileSystems),
    /// Lives of simulated drives.
    Lives(Lives),
}

impl Experiment {
    /// Reads a shipped plan by name, or a file by a path that ends in `.toml`.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn load(name_or_path: &str) -> Result<Self, LabError> {
        let (name, text) = read(name_or_path)?;
        Self::parse(&name, &text)
    }

    /// Reads a plan from TOML; its `tier` says of which kind it is, and `devices` that it is of
    /// lives.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        // Text that is not TOML is reported by the parser that is called below.
        let table: toml::Table = text.parse().unwrap_or_default();
        let tier = table.get("tier").and_then(toml::Value::as_str);
        match tier {
            _ if table.contains_key("devices") => Lives::parse(name, text).map(Self::Lives),
            Some("cipher") => Ciphers::parse(name, text).map(Self::Ciphers),
            Some("kdf") => Derivations::parse(name, text).map(Self::Derivations),
            Some("fs") => FileSystems::parse(name, text).map(Self::FileSystems),
            _ => Devices::parse(name, text).map(Self::Devices),
        }
    }

    /// The experiment with `changes`, checked as a whole.
    ///
    /// # Errors
    /// [`LabError`] for a change that would have no effect, and those of an impossible
    /// value.
    pub fn changed(mut self, changes: &Changes) -> Result<Self, LabError> {
        match &mut self {
            Self::Ciphers(ciphers) => ciphers.apply(changes),
            Self::Devices(devices) => devices.apply(changes)?,
            Self::Derivations(derivations) => derivations.apply(changes),
            Self::FileSystems(file_systems) => file_systems.apply(changes)?,
            Self::Lives(_) => {}
        }
        settings::check(changes.given(), |setting| self.refuses(setting))?;
        self.validate()?;
        Ok(self)
    }

    /// What `setting` cannot be chosen for; `None` if it can be chosen.
    pub fn refuses(&self, setting: Setting) -> Option<&'static str> {
        match self {
            Self::Ciphers(ciphers) => ciphers.refuses(setting),
            Self::Devices(devices) => devices.refuses(setting),
            Self::Derivations(derivations) => derivations.refuses(setting),
            Self::FileSystems(file_systems) => file_systems.refuses(setting),
            Self::Lives(lives) => lives.refuses(setting),
        }
    }

    /// The systems, ciphers and workloads that a matrix may choose from; `None` for kinds that are
    /// measured whole.
    pub(crate) fn axes(
        &mut self,
    ) -> Option<(&mut Vec<SystemId>, &mut Vec<String>, &mut Vec<Workload>)> {
        match self {
            Self::Ciphers(of) => Some((&mut of.systems, &mut of.ciphers, &mut of.workloads)),
            Self::Devices(of) => Some((&mut of.systems, &mut of.ciphers, &mut of.workloads)),
            _ => None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), LabError> {
        match self {
            Self::Ciphers(ciphers) => ciphers.validate(),
            Self::Devices(devices) => devices.validate(),
            Self::Derivations(derivations) => derivations.validate(),
            Self::FileSystems(file_systems) => file_systems.validate(),
            Self::Lives(lives) => lives.validate(),
        }
    }

    /// What would be measured, with the storage `at`, in a few lines.
    pub fn describe(&self, at: &Path) -> String {
        match self {
            Self::Ciphers(ciphers) => ciphers.describe(),
            Self::Devices(devices) => devices.describe(at),
            Self::Derivations(derivations) => derivations.describe(),
            Self::FileSystems(file_systems) => file_systems.describe(at),
            Self::Lives(lives) => lives.describe(),
        }
    }

    /// File stem or embedded name.
    pub fn name(&self) -> &str {
        match self {
            Self::Ciphers(ciphers) => &ciphers.name,
            Self::Devices(devices) => &devices.name,
            Self::Derivations(derivations) => &derivations.name,
            Self::FileSystems(file_systems) => &file_systems.name,
            Self::Lives(lives) => &lives.name,
        }
    }

    /// One line for the list of plans.
    pub fn title(&self) -> &str {
        match self {
            Self::Ciphers(ciphers) => &ciphers.title,
            Self::Devices(devices) => &devices.title,
            Self::Derivations(derivations) => &derivations.title,
            Self::FileSystems(file_systems) => &file_systems.title,
            Self::Lives(lives) => &lives.title,
        }
    }

    /// The tier that is timed.
    pub fn tier(&self) -> Tier {
        match self {
            Self::Ciphers(_) | Self::Derivations(_) => Tier::Cipher,
            Self::Devices(devices) => devices.tier(),
            Self::Lives(_) => Tier::Block,
            Self::FileSystems(_) => Tier::Fs,
        }
    }

    /// Every system that takes part by name.
    pub fn systems(&self) -> &[SystemId] {
        match self {
            Self::Ciphers(ciphers) => &ciphers.systems,
            Self::Devices(devices) => &devices.systems,
            Self::FileSystems(file_systems) => &file_systems.systems,
            Self::Derivations(_) | Self::Lives(_) => &[],
        }
    }

    /// Whether all its storage is simulated: nothing of this machine's takes part.
    pub fn is_simulated(&self) -> bool {
        match self {
            Self::Devices(devices) => devices.is_simulated(),
            Self::Lives(_) => true,
            _ => false,
        }
    }

    /// Whether it uses storage of this machine.
    pub fn uses_storage(&self) -> bool {
        self.refuses(Setting::Place).is_none()
    }
}

/// Reads one kind of experiment. A key that chooses what does not apply to `of` is refused like
/// the option for it.
fn from_toml<T: DeserializeOwned>(
    name: &str,
    text: &str,
    refuses: impl Fn(Setting) -> Option<&'static str>,
) -> Result<T, LabError> {
    toml::from_str(text).map_err(|error| {
        let unknown = error.message().strip_prefix("unknown field `");
        let key = unknown.and_then(|rest| rest.split('`').next());
        let setting = key.and_then(Setting::of_key);
        match setting.map(|setting| settings::check([setting], &refuses)) {
            Some(Err(refused)) => refused,
            _ => syntax(name, text, &error),
        }
    })
}

/// Refuses a number out of its range.
fn within(key: &'static str, value: u64, low: u64, high: u64) -> Result<(), LabError> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(LabError::invalid(
            format!("{key} = {value} is not between {low} and {high}"),
            "Change the value. `cryptmark plans show quick` prints a plan to copy.",
        )),
    }
}

/// Refuses names that stand twice.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), LabError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(LabError::invalid(
                format!("two workloads are named {name:?}"),
                "Give every workload its own name.",
            ));
        }
    }
    Ok(())
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

fn ten() -> u32 {
    10
}

fn builtin() -> Vec<SystemId> {
    vec![SystemId::Builtin]
}

#[cfg(test)]
mod tests;
