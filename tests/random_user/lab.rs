//! The random user in the lab kernel, where cryptsetup has a real dm-crypt: what
//! this program writes is read through the kernel, and the other way round.

use crate::user::PROGRAM;
use lab::kernel::{Lab, Version};
use std::process::{Command, Stdio};

/// Steps there in the short form, where a step takes ten times as long.
const STEPS: u64 = 40;

#[test]
#[ignore = "runs in the lab kernel, where the next test starts it"]
fn inside() {
    crate::live(1, |user, steps| {
        user.kernel = true;
        crate::luks::live(user, "luks2", steps);
    });
}

#[test]
fn luks2_beside_dm_crypt() {
    if let Err(error) = Lab::find(Version::V5_10) {
        println!(
            "skipped: the random user in the lab kernel: {error} (cargo xtask install lab-kernel)"
        );
        return;
    }
    let agent = std::env::current_exe().unwrap();
    let (seed, steps) = (
        crate::setting("RANDOM_USER_SEED", 1),
        crate::setting("RANDOM_USER_KERNEL_STEPS", STEPS),
    );
    let script = format!(
        "RANDOM_USER_SEED={seed} RANDOM_USER_STEPS={} {} --ignored --exact lab::inside --nocapture 2>&1",
        3 * steps,
        agent.display()
    );
    let output = Command::new(PROGRAM)
        .args(["lab", "run", "--memory", "1GiB", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "{said}");
}
