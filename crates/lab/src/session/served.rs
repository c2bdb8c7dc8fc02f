//! Systems that reach the extent through the kernel or another program, opened.

use crate::error::LabError;
use crate::experiment::Devices;
use crate::system::{Encryption, Storage, SystemId, Target};
use crate::system::{served, with_causes};
use std::sync::Arc;

/// Opens `system` with every cipher of `devices`, and checks that it encrypts. Absent systems are
/// added to `absent`.
///
/// # Errors
/// [`LabError`] if our own server fails.
pub(super) fn open(
    system: &SystemId,
    devices: &Devices,
    storage: &Storage,
    absent: &mut Vec<String>,
) -> Result<Vec<Target>, LabError> {
    let at_once = storage.description.kind == "ram";
    let device = || Arc::clone(&storage.device);
    let open = |encryption: Encryption| match system {
        SystemId::BuiltinNbd => served::builtin(device(), encryption, at_once),
        SystemId::BuiltinFuse => served::builtin_file(device(), encryption, at_once),
        SystemId::Served(program) => storage.served_by(*program, encryption),
        _ => storage.mapped(encryption),
    };
    let is_ours = matches!(system, SystemId::BuiltinNbd | SystemId::BuiltinFuse);
    let mut targets = Vec::new();
    for encryption in devices.encryptions_on(devices.backend.filter(|_| is_ours))? {
        match open(encryption) {
            Ok(target) => {
                target.self_check(&*storage.device)?;
                targets.push(target);
            }
            // Of ours only the system's part may be missing.
            Err(error) if is_ours && !error.is_absence() => return Err(error),
            Err(reason) => absent.push(with_causes(&reason)),
        }
    }
    Ok(targets)
}
