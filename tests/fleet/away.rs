//! A store that is away, full or closed: two lines, and nothing lost.

use crate::{on, sandbox, server};
use std::os::unix::fs::PermissionsExt;

#[test]
fn runs_wait_for_a_server_that_is_away() {
    let Some(server) = server() else { return };
    let sandbox = sandbox();
    let url = server.url("runs");
    let with = |arguments: &[&str]| {
        let arguments = [&["--store", &url], arguments].concat();
        sandbox.run(&arguments)
    };
    let told = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    server.stop("fast").unwrap();
    let quick = ["run", "drives.toml", "--repeat", "1", "--no-progress"];
    let output = with(&[&quick[..], &["--system", "drive:hdd-wd"]].concat());
    assert!(output.status.success(), "{}", told(&output));
    assert!(
        told(&output).contains("cannot be reached"),
        "{}",
        told(&output)
    );
    assert!(
        told(&output).contains("1 run(s) wait in "),
        "{}",
        told(&output)
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("Stored as"));

    // Who only wants to read is told that something waits.
    let output = with(&["list"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        told(&output).trim_end().lines().count(),
        2,
        "{}",
        told(&output)
    );
    assert!(
        told(&output).contains("1 run(s) wait in "),
        "{}",
        told(&output)
    );
    let output = with(&["store"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("not reachable: "));

    // A shard is not done before it is stored: its engine is told to try again.
    let output = with(&["run", "drives.toml", "--shard", "1/40", "--no-progress"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));

    server.go().unwrap();
    let output = with(&["list"]);
    assert!(
        told(&output).contains("2 run(s) that waited are stored now"),
        "{}",
        told(&output)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    let output = with(&["run", "drives.toml", "--shard", "1/40", "--no-progress"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("stored already"));
}

#[test]
fn a_store_that_cannot_be_used_is_told_in_two_lines() {
    let Some(server) = server() else { return };
    let sandbox = sandbox();
    let url = server.url("runs");
    server.sql(
        "runs",
        "CREATE ROLE guest LOGIN PASSWORD 'secret' VALID UNTIL '2020-01-01'",
    );
    let guest = server.url_of("guest:secret", "runs");
    let told = sandbox.fails(1, &["--store", &guest, "run", "drives.toml"]);
    assert!(
        told.contains("refuses access to this user") && !told.contains("secret"),
        "{told}"
    );

    sandbox.ok(&["--store", &url, "list"]);
    server.sql("runs", "UPDATE cryptmark.schema_version SET version = 99");
    let told = sandbox.fails(2, &["--store", &url, "run", "drives.toml"]);
    assert!(told.contains("version 99"), "{told}");
    server.sql("runs", "UPDATE cryptmark.schema_version SET version = 2");

    // The configuration names the store, and how much may wait for it.
    let folder = sandbox.path("host/cryptmark");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.toml");
    let configure = |text: String| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    configure(format!("store = \"{url}\"\nspool_size = \"12 kB\"\n"));
    assert!(sandbox.ok(&["store"]).ends_with("0 run(s)\n"));
    server.stop("fast").unwrap();
    let run = [
        "run",
        "drives.toml",
        "--repeat",
        "1",
        "--no-progress",
        "--system",
        "drive:hdd-wd",
    ];
    // A run is kept whole, however little room there is, and the next one does not begin.
    sandbox.ok(&run);
    let output = sandbox.run(&run);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("is full") && told.contains("store hand-over"),
        "{told}"
    );
    server.go().unwrap();
    sandbox.ok(&["store", "hand-over"]);
    sandbox.ok(&run);
    let listed = on(&sandbox, "elsewhere", &["--store", &url, "list"]);
    assert_eq!(listed.matches("drives").count(), 2, "{listed}");

    configure("stoer = \"x\"\n".to_owned());
    assert!(sandbox.fails(2, &["list"]).contains("config.toml"));
    configure("store = \"postgres://me:secret@host/db\"\n".to_owned());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let told = sandbox.fails(2, &["list"]);
    assert!(
        told.contains("chmod 600") && !told.contains("secret"),
        "{told}"
    );
}
