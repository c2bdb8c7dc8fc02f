//! Commands at once, and one file by two names.

use crate::kit::{Format, Volumes};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Stdio};
use testkit::CHEAP;

/// New passphrases, added at the same time.
const NEW: [&str; 4] = ["new0", "new1", "new2", "new3"];

/// Adds all of them at once; what each program has said, if it failed.
fn add(sandbox: &Volumes, theirs: &[&str]) -> Vec<Option<String>> {
    sandbox.write_key("pass");
    let start = |name: &&str| -> Child {
        sandbox.write(name, format!("passphrase {name}"));
        let mut command = match theirs.contains(name) {
            true => sandbox.command(
                "cryptsetup",
                &format!("--batch-mode luksAddKey {CHEAP} --key-file key image {name}"),
            ),
            false => sandbox.cryptmark(&format!(
                "volume key add image --passphrase-file pass --new-key-file {name} {CHEAP}"
            )),
        };
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<Child> = NEW.iter().map(start).collect();
    let ended = children.into_iter().map(|child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then_some(said)
    });
    ended.collect()
}

fn opens(sandbox: &Volumes, name: &str) -> bool {
    let open = format!("volume open image --key-file {name}");
    sandbox.cryptmark(&open).output().unwrap().status.success()
}

#[test]
fn passphrases_added_at_once_all_open() {
    for kind in ["luks1", "luks2"] {
        let sandbox = Volumes::new(Format::Luks2);
        if kind == "luks1" {
            fs::remove_file(sandbox.path("image")).unwrap();
            let create =
                format!("create image --size 4MiB --type luks1 --passphrase-file pass {CHEAP}");
            sandbox.volume(&create);
        }
        for (name, failed) in NEW.iter().zip(add(&sandbox, &[])) {
            assert_eq!(failed, None, "{kind}: {name}");
            assert!(opens(&sandbox, name), "{kind}: {name} does not open it");
        }
        assert!(
            sandbox
                .try_run("cryptsetup", "luksDump image")
                .is_ok_and(|dump| !dump.is_empty())
        );
    }
}

/// cryptsetup gives up where it would have to wait, and says so.
#[test]
fn passphrases_added_beside_cryptsetup_open_or_are_refused() {
    let sandbox = Volumes::new(Format::Luks2);
    let theirs = &NEW[2..];
    for (name, failed) in NEW.iter().zip(add(&sandbox, theirs)) {
        if failed.is_none() || !theirs.contains(name) {
            assert_eq!(failed, None, "{name}");
        }
        assert_eq!(
            opens(&sandbox, name),
            failed.is_none(),
            "{name}: {failed:?}"
        );
    }
    sandbox.is_sound("image", "pass").unwrap();
}

/// A reader keeps the header as it is. A writer keeps it from a write to its flush, and looks at it
/// before it goes on.
#[test]
fn cryptsetup_waits_for_what_reads_and_not_for_what_is_idle() {
    for (options, waits) in [("", false), ("--read-only", true)] {
        let sandbox = Volumes::new(Format::Luks2);
        let header = || sandbox.read("image")[..32 << 10].to_vec();
        let serve =
            format!("serve image --passphrase-file pass --nbd here.sock --daemon {options}");
        sandbox.volume(&serve);
        let before = header();
        let theirs = "3 cryptsetup --batch-mode config --label new image";
        let ended = sandbox.command("timeout", theirs).output().unwrap();
        assert_eq!(ended.status.success(), !waits, "{options}");
        assert_eq!(header() == before, waits, "{options}");
        sandbox.try_run("cryptsetup", "luksDump image").unwrap();
        sandbox.volume("umount image");
        let later = "9 cryptsetup --batch-mode config --label newer image";
        assert!(
            sandbox
                .command("timeout", later)
                .status()
                .unwrap()
                .success()
        );
    }
}

/// Commands with two arguments that must be two files; `LINK` is another name of `image`.
const TWO_FILES: &[&str] = &[
    "convert image --header LINK --type luks2",
    "create image --header LINK --passphrase-file pass --yes",
    "export image --passphrase-file pass --output LINK --yes",
    "header backup image --header LINK --output new",
    "header restore image --input LINK --yes",
    "import image --header LINK --passphrase-file pass --input plain --yes",
    "import image --passphrase-file pass --input LINK --yes",
    "open image --header LINK --passphrase-file pass",
    "reencrypt image --decrypt --header LINK --passphrase-file pass",
    "reencrypt image --header LINK --passphrase-file pass",
];

#[test]
fn two_names_of_one_file_are_refused() {
    let sandbox = Volumes::new(Format::Luks2);
    let before = sandbox.read("image");
    fs::hard_link(sandbox.path("image"), sandbox.path("hard")).unwrap();
    symlink("image", sandbox.path("soft")).unwrap();
    symlink(sandbox.path(""), sandbox.path("folder")).unwrap();
    for link in ["image", "hard", "soft", "folder/image"] {
        for line in TWO_FILES {
            let line = line.replace("LINK", link);
            let volume = sandbox.cryptmark(&format!("volume {line}")).output();
            let output = volume.unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}\n{said}");
            assert!(sandbox.read("image") == before, "{line} has changed it");
        }
    }
    assert!(!sandbox.path("new").exists());
}

/// The kernel writes to its blocks, whatever the name.
#[test]
fn a_swap_file_is_in_use_by_its_other_name_too() {
    let sandbox = Volumes::new(Format::Luks2);
    let file = fs::File::create(sandbox.path("swap")).unwrap();
    file.set_len(0).unwrap();
    sandbox.write("swap", vec![0; 2 << 20]);
    fs::hard_link(sandbox.path("swap"), sandbox.path("other-name")).unwrap();
    let swapped = sandbox
        .try_run("mkswap", "swap")
        .and_then(|_| sandbox.try_run("chmod", "600 swap"))
        .and_then(|_| sandbox.try_run("swapon", "swap"));
    if let Err(error) = swapped {
        println!("skipped: a swap file: {error}");
        return;
    }
    let before = sandbox.read("swap");
    let lines = [
        format!("volume create other-name --passphrase-file pass {CHEAP} --yes"),
        "volume create other-name --type plain --yes".to_owned(),
        "volume import other-name --type plain --passphrase-file pass --input plain --yes"
            .to_owned(),
    ];
    let ended = lines.map(|line| sandbox.cryptmark(&line).output().unwrap());
    let after = sandbox.read("swap");
    sandbox.try_run("swapoff", "swap").unwrap();
    for output in ended {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("swap"), "{said}");
    }
    assert!(after == before);
}
