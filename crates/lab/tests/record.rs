//! Records of the form before are read, and written in the form of today.

use cryptmark_lab::record::{Detail, Run, SCHEMA, Verdict};

/// Of a device, of a file system, of a key derivation and of lives, by version 0.1.0.
const BEFORE: &str = include_str!("data/record-1.json");

#[test]
fn old_records_are_read() {
    let run: Run = serde_json::from_str(BEFORE).unwrap();
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
    // Of one pair that program said that it was not distinguishable.
    let few = file_system.overhead.as_ref().unwrap();
    assert_eq!((few.ratio.n, few.verdict), (2, Verdict::TooFew));

    let today = serde_json::to_value(&run).unwrap();
    assert_eq!(
        (&today["schema"], run.schema.as_str()),
        (&"cryptmark/2".into(), SCHEMA)
    );
    let trials = today["trials"].as_array().unwrap();
    assert!(trials.iter().all(|trial| trial.get("fs").is_none()));
    assert_eq!(trials[1]["operation"]["fs"], "ext2");
    assert_eq!(serde_json::from_value::<Run>(today).unwrap(), run);
}
