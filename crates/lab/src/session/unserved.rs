//! Substitutes on other systems for the systems that need Linux.

use super::SessionError;
use crate::plan::Plan;
use crate::target::{Backend, Storage, System, Target};

/// Tells `absent` that `system` is not here.
pub(super) fn open(
    system: &System,
    _: &Plan,
    _: &Storage,
    _: Option<Backend>,
    absent: &mut Vec<String>,
) -> Result<Vec<Target>, SessionError> {
    absent.push(format!("{} (it needs Linux)", system.as_str()));
    Ok(Vec::new())
}
