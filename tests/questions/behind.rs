//! What lies behind a volume in its file or on its device, which the volume's end is looked
//! for from: nothing of it goes unasked.

use super::{Answer, Loop, PROGRAM, nothing_wrong, refused, run, sandbox};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Command;
use testkit::Sandbox;

const MIB: u64 = 1 << 20;
const V: &str = "v --type veracrypt --hash sha256 --veracrypt-pim 1 --passphrase-file pass";
const LONG: &str = "a passphrase of many letters, and of many more";

/// A VeraCrypt volume of 2 MiB in `v`.
fn prepared() -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("pass", LONG);
    sandbox.volume(&format!("create {V} --size 2M --quick"));
    sandbox
}

/// Writes `bytes` behind all that `v` holds.
fn append(sandbox: &Sandbox, bytes: &[u8]) {
    let mut file = File::options()
        .append(true)
        .open(sandbox.path("v"))
        .unwrap();
    file.write_all(bytes).unwrap();
}

fn precious(length: usize) -> Vec<u8> {
    b"precious\n".iter().copied().cycle().take(length).collect()
}

#[test]
fn a_volume_does_not_grow_over_what_is_behind_it_unasked() {
    let sandbox = prepared();
    append(&sandbox, &precious(MIB as usize));
    let resize = format!("resize {V} --to 3M");
    let wanted = &["behind the volume", "from byte 2097152 on"];
    let mut wrong = refused(&sandbox, &resize, b"", 4, wanted);
    wrong.extend(refused(
        &sandbox,
        &format!("resize {V} --to 4M"),
        b"",
        4,
        wanted,
    ));
    nothing_wrong(&wrong);
    sandbox.volume(&format!("{resize} --yes"));
    sandbox.volume(&format!("open {V} --tcrypt-backup"));
}

/// Bytes behind the last whole block are bytes.
#[test]
fn no_odd_byte_at_the_end_goes_unasked() {
    let sandbox = prepared();
    append(&sandbox, &precious(100));
    let smaller = refused(
        &sandbox,
        &format!("resize {V} --to 2M"),
        b"",
        2,
        &["smaller"],
    );
    let over = refused(
        &sandbox,
        &format!("resize {V} --to 3M"),
        b"",
        4,
        &["behind"],
    );
    nothing_wrong(&[smaller, over].concat());
    sandbox.volume(&format!("resize {V} --to 3M --yes"));
}

/// A disk that cannot take what was written says so at the end of a flush.
#[test]
fn a_file_that_could_not_be_flushed_is_as_long_as_it_was() {
    let sandbox = prepared();
    let traced = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "inject=fsync:error=EIO:when=1",
        ])
        .args([PROGRAM, "volume", "resize"])
        .args(V.split(' '))
        .args(["--to", "3M", "--no-header-backup"])
        .current_dir(sandbox.directory())
        .output();
    let Ok(traced) = traced else {
        return println!("skipped: a failed flush: there is no strace");
    };
    let said = String::from_utf8_lossy(&traced.stderr);
    if said.contains("ptrace") {
        return println!("skipped: a failed flush: {said}");
    }
    assert_eq!(traced.status.code(), Some(1), "{said}");
    assert_eq!(fs::metadata(sandbox.path("v")).unwrap().len(), 2 * MIB);
    sandbox.volume(&format!("open {V} --tcrypt-backup"));
}

/// Programs look for the copy of the header from the real end.
#[test]
fn no_volume_ends_within_a_sector() {
    let sandbox = prepared();
    let words = &["512"];
    let mut wrong = refused(&sandbox, &format!("resize {V} --to 3MB"), b"", 2, words);
    let create = V.replacen('v', "new", 1);
    wrong.extend(refused(
        &sandbox,
        &format!("create {create} --size 3MB"),
        b"",
        2,
        words,
    ));
    nothing_wrong(&wrong);
    assert!(!sandbox.path("new").exists());
}

#[test]
fn a_volume_on_a_device_takes_no_more_than_it_was_told() {
    let sandbox = prepared();
    File::options()
        .write(true)
        .open(sandbox.path("v"))
        .and_then(|file| file.set_len(4 * MIB))
        .unwrap();
    let text = b"precious";
    let file = File::options().write(true).open(sandbox.path("v")).unwrap();
    file.write_all_at(text, 4 * MIB - 100_000).unwrap();
    drop(file);
    let Some(disk) = Loop::new(&sandbox.path("v")) else {
        return;
    };
    let opened = V.replacen('v', disk.path.to_str().unwrap(), 1);
    let before = sandbox.read("v");
    let run = |line: &str| {
        let Answer { code, said } = run(&sandbox, &format!("resize {opened} {line}"), b"");
        (code, said)
    };
    for (line, code, words) in [
        ("--to 3M", 2, "Give 4194304"),
        ("--to 3M --yes", 2, "Give 4194304"),
        ("--to 4M", 4, "behind the volume"),
    ] {
        let (got, said) = run(line);
        assert_eq!(got, Some(code), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
        assert!(sandbox.read("v") == before, "{line}");
    }
    assert_eq!(run("--to 4M --yes").0, Some(0));
    drop(disk);
    sandbox.volume(&format!("open {V} --tcrypt-backup"));
}

/// Where the copy of a header would be written from the end of the device, there is
/// something of somebody else's.
#[test]
fn no_copy_of_a_header_is_written_behind_the_volume() {
    // Less than the copies take, and more.
    for behind in [512, 65_536, 100_000, MIB as usize] {
        no_copy_is_written_behind(behind);
    }
}

fn no_copy_is_written_behind(behind: usize) {
    let sandbox = prepared();
    let hidden = "--tcrypt-hidden 256K --outer-pim 1 --new-passphrase-file other --yes";
    sandbox.volume(&format!("create {V} {hidden}"));
    sandbox.volume("header backup v --type veracrypt -o saved");
    let before = sandbox.read("v").len();
    append(&sandbox, &precious(behind));
    let of_hidden = V.replace(" pass", " other");
    let mut wrong = Vec::new();
    for line in [
        format!("passwd {V} --new-passphrase-file other"),
        format!("passwd {of_hidden} --tcrypt-hidden --new-passphrase-file new"),
        format!("header repair {V}"),
        format!("header repair {of_hidden} --tcrypt-hidden"),
        format!("header restore {V} -i saved"),
        format!("create {V} {hidden}"),
        format!("reencrypt {V} --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --yes"),
    ] {
        sandbox.write("new", "a third passphrase of many letters\n");
        wrong.extend(refused(&sandbox, &line, b"", 4, &["behind the volume"]));
    }
    nothing_wrong(&wrong);
    // What the user gives up goes, and then it is a copy as any other.
    sandbox.volume(&format!("header repair {V} --yes"));
    sandbox.volume(&format!("passwd {V} --new-passphrase-file new"));
    let renewed = V.replace(" pass", " new");
    sandbox.volume(&format!("open {renewed} --tcrypt-backup"));
    // The copy of before, which opened with the old passphrase, goes.
    sandbox.write("cut", &sandbox.read("v")[..before]);
    let old = V.replace("v ", "cut ");
    let answer = run(&sandbox, &format!("open {old} --tcrypt-backup"), b"");
    assert_eq!(answer.code, Some(3), "{behind}: {answer:?}");
    // Nothing is lost where nothing is.
    let file = File::options().write(true).open(sandbox.path("v")).unwrap();
    file.set_len(8 * MIB).unwrap();
    drop(file);
    sandbox.volume(&format!("passwd {renewed} --new-passphrase-file pass"));
}
