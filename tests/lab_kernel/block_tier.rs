//! The kernel's dm-crypt as a system of the block tier: the lab kernel has it.

use crate::sandbox::{PROGRAM, run, sandbox, succeed};

/// The quick plan, as short as it gets, in a file system in memory.
fn script(options: &str) -> String {
    format!(
        "mkdir /tmp/memory && mount -t tmpfs none /tmp/memory && cd /tmp/memory && \
         CRYPTMARK_STORE=/tmp/memory/runs.db {PROGRAM} run quick --quick --at . --size 40MiB \
         --no-progress {options}; code=$?; ls /sys/block >$OLDPWD/out/devices; exit $code"
    )
}

#[test]
fn dm_crypt_is_measured_on_a_bare_extent_and_goes() {
    let Some(sandbox) = sandbox() else { return };
    succeed(
        &sandbox,
        &[],
        &script(
            "--system dm-crypt --cipher aes-xts-plain64 --cipher serpent-cbc-essiv:sha256 --json $OLDPWD/out/run.json",
        ),
    );
    let run = sandbox.read_text("out/run.json");
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let trials = run["trials"].as_array().unwrap();
    for cipher in ["aes-xts-plain64", "serpent-cbc-essiv:sha256"] {
        let mut of_cipher = trials
            .iter()
            .filter(|trial| trial["cipher"] == cipher && trial["system"] == "dm-crypt")
            .peekable();
        assert!(of_cipher.peek().is_some(), "{cipher}");
        for trial in of_cipher {
            assert!(
                trial["throughput_mb_s"]["median"].as_f64().unwrap() > 0.0,
                "{trial}"
            );
            // Nobody tells what part was the cipher's.
            assert!(trial["time_s"]["crypto"].is_null(), "{trial}");
            let ratio = trial["overhead"]["ratio"]["median"].as_f64();
            assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{trial}");
        }
    }
    let devices = sandbox.read_text("out/devices");
    assert!(!devices.contains("dm-"), "{devices}");
}

#[test]
fn a_cipher_that_the_kernel_lacks_is_named() {
    let Some(sandbox) = sandbox() else { return };
    let output = run(
        &sandbox,
        &[],
        &script("--system dm-crypt --cipher kuznyechik-xts-plain64"),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let refused = "dm-crypt does not serve kuznyechik-xts-plain64";
    assert!(said.contains(refused), "{said}");
}
