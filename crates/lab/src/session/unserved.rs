//! Substitutes on other systems for the systems that need Linux.

use crate::error::LabError;
use crate::experiment::Devices;
use crate::system::{Storage, SystemId, Target};

/// Tells `absent` that `system` is not here.
pub(super) fn open(
    system: &SystemId,
    _: &Devices,
    _: &Storage,
    absent: &mut Vec<String>,
) -> Result<Vec<Target>, LabError> {
    absent.push(format!("{} (it needs Linux)", system.as_str()));
    Ok(Vec::new())
}
