//! Volumes inside disk images: partition tables as other programs make them.

use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use testkit::{Sandbox, have, noise};

const MIB: u64 = 1 << 20;
const CHEAP: &str = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_cryptmark"))
        .with_file("secret", "a passphrase\n")
        .with_file("other", "another one\n")
        .with_file("wrong", "wrong\n")
}

/// A disk `d.img` of 64 MiB with a GPT: `boot` of 8 MiB, `data` of 24 MiB, and the rest.
fn gpt(sandbox: &Sandbox) {
    sandbox.write("d.img", noise(64 << 20, 1));
    let parts = [
        "--clear",
        "--new=1:2048:+8M",
        "--change-name=1:boot",
        "--new=2:0:+24M",
        "--change-name=2:data",
        "--new=3:0:0",
        "--change-name=3:all the rest",
        "d.img",
    ];
    sandbox.tool("sgdisk", &parts);
}

/// What `volume find` says of the parts of `d.img`, without the whole.
fn found(sandbox: &Sandbox) -> Vec<Value> {
    let all = sandbox.json("volume find d.img --json");
    all.as_array().unwrap()[1..].to_vec()
}

fn names(parts: &[Value]) -> Vec<&str> {
    parts
        .iter()
        .map(|part| part["name"].as_str().unwrap())
        .collect()
}

/// Start and length of a part of one piece.
fn range(part: &Value) -> (u64, u64) {
    let ranges = part["ranges"].as_array().unwrap();
    assert_eq!(ranges.len(), 1, "{part}");
    let number = |key: &str| ranges[0][key].as_u64().unwrap();
    (number("offset"), number("length"))
}

/// A table of `d.img` by `sfdisk` or `fdisk`, from what they read on standard input.
fn table(sandbox: &Sandbox, program: &str, options: &[&str], script: &str) {
    let mut command = Command::new(program);
    command.args(options).arg("d.img");
    let mut child = sandbox
        .prepare(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success(), "{script}");
}

#[test]
fn a_partition_is_a_volume_to_every_command() {
    if !have(&["sgdisk", "cryptsetup"]) {
        return;
    }
    let sandbox = sandbox();
    gpt(&sandbox);
    let before = sandbox.read("d.img");
    let data = range(&found(&sandbox)[1]);
    assert_eq!(data.1, 24 * MIB);
    let (start, end) = (data.0 as usize, (data.0 + data.1) as usize);

    let refused = sandbox.fails(
        4,
        "volume create d.img --partition 2 --passphrase-file secret",
    );
    assert!(refused.contains("d.img holds data"), "{refused}");
    assert!(sandbox.read("d.img") == before);
    sandbox.ok(&format!(
        "volume create d.img --partition 2 --yes --passphrase-file secret {CHEAP}"
    ));
    let said = sandbox.ok("volume open d.img --partition data --passphrase-file secret");
    assert!(said.contains("aes-xts-plain64"), "{said}");
    sandbox.fails(3, "volume open d.img --partition 2 --passphrase-file wrong");

    let plaintext = noise((data.1 - 16 * MIB) as usize, 2);
    sandbox.write("plain", &plaintext);
    sandbox.ok("volume import d.img --partition 2 --yes --input plain --passphrase-file secret");
    sandbox.ok("volume export d.img --partition 2 --output read --passphrase-file secret");
    assert!(sandbox.read("read") == plaintext);

    // The volume's other commands, and cryptsetup of the partition alone.
    sandbox.ok(&format!(
        "volume passwd d.img --partition 2 --passphrase-file secret --new-passphrase-file other {CHEAP}"
    ));
    sandbox.ok("volume header backup d.img --partition 2 --output saved");
    let backups = sandbox.ok("volume header backups d.img --partition 2");
    assert!(
        backups.contains("restore d.img --partition '2'"),
        "{backups}"
    );
    let none = sandbox.ok("volume header backups d.img --partition 3");
    assert!(none.contains("no backup is known to be"), "{none}");
    sandbox.ok("volume reencrypt d.img --partition 2 --yes --passphrase-file other");
    sandbox.write("alone", &sandbox.read("d.img")[start..end]);
    sandbox.write("key", "another one");
    sandbox.tool("cryptsetup", "open --test-passphrase --key-file key alone");
    sandbox.ok("volume export alone --output read-alone --passphrase-file other");
    assert!(sandbox.read("read-alone") == plaintext);
    let refused = sandbox.fails(2, "volume resize d.img --partition 2 --to 30MiB");
    assert!(refused.contains("the size of the device"), "{refused}");

    let after = sandbox.read("d.img");
    assert!(after[..start] == before[..start] && after[end..] == before[end..]);
    assert!(after[start..end] != before[start..end]);
}

#[test]
fn a_damaged_table_is_read_by_its_copy() {
    if !have(&["sgdisk"]) {
        return;
    }
    let sandbox = sandbox();
    gpt(&sandbox);
    let whole = found(&sandbox);
    let image = File::options()
        .write(true)
        .open(sandbox.path("d.img"))
        .unwrap();
    image.write_all_at(&[7; 3], 1024 + 40).unwrap();
    let output = sandbox.run("volume find d.img --json");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("its copy at the end was used"), "{said}");
    assert_eq!(found(&sandbox), whole);
    image.write_all_at(&[7; 3], 64 * MIB - 512 + 16).unwrap();
    let output = sandbox.run("volume find d.img");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("both copies of the partition table"),
        "{said}"
    );
    let said = sandbox.fails(2, "volume open d.img --partition 2");
    assert!(said.contains("there is no partition table"), "{said}");
}

#[test]
fn sectors_of_4096_bytes_and_logical_partitions() {
    if !have(&["fdisk", "sfdisk"]) {
        return;
    }
    let sandbox = sandbox();
    sandbox.write_zeros("d.img", 64 * MIB);
    let script = "g\nn\n1\n256\n2303\nn\n2\n4096\n5119\nw\n";
    table(&sandbox, "fdisk", &["-b", "4096"], script);
    let parts = found(&sandbox);
    assert_eq!(names(&parts), ["1", "2"]);
    assert_eq!(range(&parts[0]), (256 * 4096, 2048 * 4096));
    assert_eq!(range(&parts[1]), (4096 * 4096, 1024 * 4096));

    sandbox.write_zeros("d.img", 64 * MIB);
    let script = "label: dos\nstart=2048, size=8192, type=83\nstart=10240, size=90000, type=5\n\
                  start=12288, size=4096, type=83\nstart=20480, size=16384, type=8e\n\
                  start=40960, size=2048, type=7\n";
    table(&sandbox, "sfdisk", &[], script);
    let parts = found(&sandbox);
    assert_eq!(names(&parts), ["1", "5", "6", "7"]);
    let sectors: Vec<_> = parts
        .iter()
        .map(range)
        .map(|(at, bytes)| (at / 512, bytes / 512))
        .collect();
    assert_eq!(
        sectors,
        [(2048, 8192), (12288, 4096), (20480, 16384), (40960, 2048)]
    );
    assert_eq!(parts[2]["partition_type"], "8e");
}

#[test]
fn what_cannot_be_had_is_said() {
    if !have(&["sgdisk"]) {
        return;
    }
    let sandbox = sandbox().with_file("alone", noise(1 << 20, 3));
    gpt(&sandbox);
    sandbox.tool("sgdisk", "--change-name=3:boot d.img");
    for (command, words) in [
        ("volume open d.img --partition 9", "there are 1, 2, 3"),
        (
            "volume open d.img --partition boot",
            "the label of several partitions: 1, 3",
        ),
        (
            "volume open alone --partition 1",
            "there is no partition table",
        ),
        ("volume open d.img", "`cryptmark volume find`"),
        ("volume status --partition 1", "does not work on an image"),
        (
            "volume serve d.img d.img --partition 1 --nbd s",
            "--partition is for one volume",
        ),
    ] {
        let said = sandbox.fails(2, command);
        assert!(said.contains(words), "{command}: {said}");
    }
    // An image that is cut off has the first partitions still.
    File::options()
        .write(true)
        .open(sandbox.path("d.img"))
        .unwrap()
        .set_len(20 * MIB)
        .unwrap();
    let parts = found(&sandbox);
    let said = parts[1]["unusable"].as_str().unwrap();
    assert!(said.contains("the image is cut off"), "{said}");
    assert_eq!(range(&parts[0]).1, 8 * MIB);
    let said = sandbox.fails(2, "volume open d.img --partition 2");
    assert!(said.contains("cannot be used: it ends"), "{said}");
}
