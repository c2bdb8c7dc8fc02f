//! A record of every kind of trial is read, and written as it was.

use cryptmark_lab::record::{Detail, Run, SCHEMA};

/// Of a device, of a file system, of a key derivation and of lives.
const FOUR_KINDS: &str = include_str!("data/four-kinds.json");

#[test]
fn every_kind_of_trial_is_read_and_written() {
    let run: Run = serde_json::from_str(FOUR_KINDS).unwrap();
    assert_eq!(run.schema, SCHEMA);
    let [device, file_system, kdf, life] = &run.trials[..] else {
        panic!("it has four trials");
    };
    assert_eq!(device.detail, Detail::Requests);
    let operation = file_system.operation().unwrap();
    assert_eq!(operation.fs.as_deref(), Some("ext2"));
    assert_eq!(
        (operation.samples_s.len(), operation.samples_crypto_s.len()),
        (2, 2)
    );
    assert!(operation.moved.unwrap().read_bytes > 6_000_000);
    assert_eq!(kdf.kdf().unwrap().name, "pbkdf2");
    assert_eq!(life.life().unwrap().samples_lifetime_years.len(), 2);

    let written = serde_json::to_value(&run).unwrap();
    assert!(written["trials"][1].get("fs").is_none());
    assert_eq!(written["trials"][1]["operation"]["fs"], "ext2");
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
}
