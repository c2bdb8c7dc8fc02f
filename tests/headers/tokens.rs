//! Tokens of other programs in LUKS2's headers: what is told of them, and recovery keys.

use super::sandbox::sandbox;
use testkit::{CHEAP, have};

const RECOVERY: &str = "cbdefghi-jklnrtuv-cccccccc-vvvvvvvv-bbbbbbbb-dddddddd-rtrtrtrt-ununcbcb";

#[test]
fn tokens_are_told_and_recovery_keys_open_however_they_are_typed() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = sandbox()
        .with_file("pass", "a passphrase\n")
        .with_file("recovery", format!("{RECOVERY}\n"))
        .with_file("wrong", format!("{}\n", RECOVERY.replacen('c', "d", 1)));
    let (without, capitals) = (RECOVERY.replace('-', ""), RECOVERY.to_uppercase());
    sandbox.write("without", format!("{without}\n"));
    sandbox.write("capitals", format!("{capitals}\n"));
    sandbox.volume(&format!(
        "create v --size 20MiB {CHEAP} --passphrase-file pass"
    ));
    sandbox.volume(&format!(
        "key add v {CHEAP} --passphrase-file pass --new-passphrase-file recovery"
    ));
    for typed in ["without", "capitals"] {
        sandbox.fails(3, &format!("volume open v --passphrase-file {typed}"));
    }
    for token in [
        r#"{"type":"systemd-recovery","keyslots":["1"]}"#,
        r#"{"type":"systemd-tpm2","keyslots":["0"],"tpm2-blob":"c2VjcmV0","tpm2-pcrs":[7],"tpm2-pcr-bank":"sha256","tpm2-policy-hash":"ab"}"#,
        r#"{"type":"of-another","keyslots":[]}"#,
    ] {
        sandbox.write("token", token);
        sandbox.tool("cryptsetup", "token import --json-file token v");
    }
    for typed in ["recovery", "without", "capitals"] {
        sandbox.volume(&format!("open v --passphrase-file {typed}"));
        sandbox.volume(&format!("open v --key-slot 1 --passphrase-file {typed}"));
    }
    sandbox.fails(3, "volume open v --passphrase-file wrong");
    // It is the recovery key of that slot alone, and a key file is what it is.
    sandbox.fails(3, "volume open v --key-slot 0 --passphrase-file capitals");
    sandbox.fails(3, "volume open v --key-file capitals");

    let info = sandbox.json("volume info v --json");
    let tokens = &info["tokens"];
    assert_eq!(tokens["0"]["keyslots"], serde_json::json!([1]));
    assert_eq!(
        tokens["0"]["opened_by"],
        "a recovery key, typed as a passphrase"
    );
    assert_eq!(tokens["1"]["pcrs"], serde_json::json!([7]));
    assert_eq!(tokens["1"]["pin"], false);
    assert_eq!(
        tokens["2"],
        serde_json::json!({"type": "of-another", "keyslots": []})
    );
    let text = sandbox.ok("volume info v");
    assert!(
        text.contains("a TPM 2.0, with PCRs 7 (sha256) as they were"),
        "{text}"
    );
    assert!(!text.contains("c2VjcmV0"), "{text}");
}
