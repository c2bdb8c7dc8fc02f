//! Files that the program makes are there as a whole or not at all, also after a power
//! loss: the content is on the disk before the name, and the name before the end.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::{CHEAP, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
/// Sources that name files themselves, and why they may.
const OTHERS: [(&str, &str); 6] = [
    ("src/cli/whole.rs", "tests of what is replaced meanwhile"),
    ("crates/block/src/draft.rs", "what all others use"),
    (
        "crates/serve/src/service/record.rs",
        "of no worth after a restart",
    ),
    (
        "crates/lab/src/kernel/build.rs",
        "a cache, whose kernel is synced",
    ),
    ("crates/lab/src/store/log.rs", "syncs both itself"),
    (
        "crates/lab/src/trial/operation.rs",
        "renames files of noise, which is timed",
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.file_name().unwrap() == "tests" => {}
            false if path.file_name().unwrap() == "tests.rs" => {}
            true => sources(&path, found),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The sources of the product that have one of these calls outside their tests.
fn that_call(calls: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join("src"), &mut found);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut found);
    }
    let mut calling: Vec<String> = found
        .iter()
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            calls.iter().any(|call| text.contains(call))
        })
        .map(|path| path.strip_prefix(root).unwrap().display().to_string())
        .collect();
    calling.sort();
    calling
}

#[test]
fn one_place_gives_names() {
    let mut others = OTHERS.map(|(path, _)| path.to_owned());
    others.sort();
    assert_eq!(
        that_call(&["fs::rename(", ".persist(", ".persist_noclobber("]),
        others
    );
}

/// Root runs no program that somebody else's environment names: one function decides what runs.
#[test]
fn one_place_starts_programs() {
    const ELSEWHERE: [&str; 7] = [
        // What all others use.
        "crates/block/src/program.rs",
        // A test.
        "crates/lab/src/kernel/script.rs",
        // For tests alone.
        "crates/testkit/src/browser/chromium.rs",
        "crates/testkit/src/browser/firefox.rs",
        "crates/testkit/src/running.rs",
        "crates/testkit/src/sandbox.rs",
        // A description of the program's own options.
        "src/cli/completions.rs",
    ];
    assert_eq!(that_call(&["Command::new("]), ELSEWHERE);
}

/// What a command asks the kernel for, line by line; nothing where that cannot be seen.
fn traced(sandbox: &Sandbox, arguments: &str) -> Option<Vec<String>> {
    let calls = "trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat";
    let output = sandbox
        .command("strace", &["-f", "-y", "-o", "trace", "-e", calls, PROGRAM])
        .args(arguments.split(' '))
        .output();
    let Ok(output) = output else {
        println!("skipped: what the kernel is asked for: there is no strace");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("ptrace") {
        println!("skipped: what the kernel is asked for: {said}");
        return None;
    }
    assert!(output.status.success(), "{arguments}: {said}");
    let trace = sandbox.read_text("trace");
    Some(trace.lines().map(str::to_owned).collect())
}

/// A sandbox with a volume, whose passphrase is in `pass`; headers are kept in a folder to be made.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new(PROGRAM)
        .with_path("XDG_STATE_HOME", "state/of")
        .with_file("pass", "a passphrase\n");
    sandbox.volume(&format!(
        "create v --size 20MiB --passphrase-file pass {CHEAP}"
    ));
    sandbox
}

const EXPORT: &str = "volume export v --passphrase-file pass --output";

/// The file that is replaced is left to its other names, and the user is told.
#[test]
fn hard_links_keep_the_old_content() {
    let sandbox = sandbox();
    sandbox.write("out", "old");
    fs::hard_link(sandbox.path("out"), sandbox.path("other")).unwrap();
    let done = sandbox.run(&format!("{EXPORT} out --yes"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && said.contains("hard link"),
        "{said}"
    );
    assert_eq!(sandbox.read("other"), b"old");
}

/// Who may not keep the owner of what is replaced keeps its group, or lets no other one read it.
#[test]
fn no_other_group_reads_what_is_replaced() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: files of other users: they need root");
    }
    let sandbox = sandbox();
    let path = |name| sandbox.path(name);
    fs::create_dir(path("home")).unwrap();
    for name in ["", "v", "pass", "home"] {
        chown(path(name), Some(1001), Some(3001)).unwrap();
    }
    for (group, before, after) in [
        (3001, 0o660, (3001, 0o660)),
        (3002, 0o666, (2001, 0o666)),
        (3002, 0o664, (2001, 0o644)),
        (3002, 0o606, (2001, 0o600)),
    ] {
        let _ = fs::remove_file(path("out"));
        fs::write(path("out"), "old").unwrap();
        chown(path("out"), Some(1002), Some(group)).unwrap();
        fs::set_permissions(path("out"), fs::Permissions::from_mode(before)).unwrap();
        let mut export = Command::new("setpriv");
        export
            .args(["--reuid=1001", "--regid=2001", "--groups=3001", PROGRAM])
            .args(format!("{EXPORT} out --yes").split_whitespace())
            .current_dir(sandbox.directory())
            .env("XDG_RUNTIME_DIR", path("home"))
            .env("XDG_STATE_HOME", path("home"));
        let ended = export.output().unwrap();
        // Who may not write to a file does not replace it.
        let writable = group == 3001 || before & 0o2 != 0;
        let code = if writable { 0 } else { 2 };
        assert_eq!(
            ended.status.code(),
            Some(code),
            "{group} {before:o}: {ended:?}"
        );
        if writable {
            let now = fs::metadata(path("out")).unwrap();
            let now = (now.gid(), now.mode() & 0o777);
            assert_eq!(now, after, "{group} {before:o}: {:o}", now.1);
        }
    }
}

#[test]
fn an_access_control_list_stays() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    let out = sandbox.path("out");
    fs::write(&out, "old").unwrap();
    // Its version; then kind, rights and user: the owner and one user may do all, the group
    // nothing.
    let mut list = vec![2, 0, 0, 0];
    for (kind, rights, user) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 6, 1005),
        (4, 0, u32::MAX),
        (16, 6, u32::MAX),
        (32, 0, u32::MAX),
    ] {
        list.extend(kind.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(user.to_le_bytes());
    }
    let name = "system.posix_acl_access";
    if let Err(error) = setxattr(&out, name, &list, XattrFlags::empty()) {
        return println!("skipped: access control lists: {error}");
    }
    sandbox.ok(&format!("{EXPORT} out --yes"));
    let mut found = [0; 1024];
    let length = getxattr(&out, name, &mut found[..]).unwrap();
    assert_eq!(found[..length], list);
    assert_eq!(
        fs::metadata(&out).unwrap().permissions().mode() & 0o777,
        0o660
    );
}

/// One of them makes the file, and the other one does not replace it.
#[test]
fn of_two_exports_to_a_new_file_one_is_refused() {
    let sandbox = sandbox();
    for round in 0..5 {
        let export = format!("{EXPORT} out{round}");
        let both = [(); 2].map(|()| {
            sandbox
                .cryptmark(&export)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        });
        let ended = both.map(|export| export.wait_with_output().unwrap());
        let mut codes = ended.each_ref().map(|output| output.status.code());
        codes.sort();
        assert_eq!(codes, [Some(0), Some(4)], "{ended:?}");
        let said = ended.map(|output| String::from_utf8(output.stderr).unwrap());
        assert!(said.concat().contains(&format!("out{round} ")), "{said:?}");
    }
}

/// Nothing is written through a link, unless the user confirms it. Then the link stays.
#[test]
fn links_stay_links() {
    let sandbox = sandbox();
    let path = |name| sandbox.path(name);
    sandbox.ok(&format!("{EXPORT} plain"));
    symlink("end", path("link")).unwrap();
    for before in [None, Some("old")] {
        if let Some(text) = before {
            fs::write(path("end"), text).unwrap();
        }
        let refused = sandbox.run(&format!("{EXPORT} link"));
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert_eq!(fs::read_to_string(path("end")).ok().as_deref(), before);
    }
    for _ in 0..2 {
        sandbox.ok(&format!("{EXPORT} link --yes"));
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
        assert!(fs::read(path("end")).unwrap() == fs::read(path("plain")).unwrap());
        fs::remove_file(path("end")).unwrap();
    }
}

/// Every command that writes a file takes the place of an empty file and of its own earlier output,
/// and of nothing else. One that measures refuses before it does.
#[test]
fn outputs_replace_their_own_kind_alone() {
    let sandbox = sandbox();
    let path = |name| sandbox.path(name);
    sandbox.write("trace", "fio version 2 iolog\nf write 0 12288\n");
    let run = "run ciphers --quick --cipher aes-xts-plain64 --repeat 1 --no-progress";
    sandbox.ok(&format!("{run} --json record.json"));
    let drive = "drive run --blocks 64 --pages-per-block 8 --no-progress";
    // What they write, and whether an earlier output of theirs is recognised.
    let outputs = [
        (format!("{run} --json"), "o.json", true),
        (format!("{run} --html"), "o.html", true),
        ("report latest --output".into(), "o.html", true),
        ("report latest --output".into(), "o.json", true),
        ("report latest --output".into(), "o.csv", true),
        ("report latest --output".into(), "o.md", true),
        (format!("{drive} --json"), "o.json", true),
        (
            "drive predict --device tlc-1t --json".into(),
            "o.json",
            false,
        ),
        (
            "drive lifetime --device mlc-128g --json".into(),
            "o.json",
            false,
        ),
        (
            "drive lifetime --device mlc-128g --html".into(),
            "o.html",
            false,
        ),
        ("drive trace trace --format fio --output".into(), "o", false),
        (
            "fleet plan quick --hosts 2 --output".into(),
            "o.toml",
            false,
        ),
        (EXPORT.into(), "o", false),
    ];
    let volume = fs::read(path("v")).unwrap();
    let foreign = b"{\"schema\": \"other/1\"}\n".to_vec();
    let cut = fs::read(path("record.json")).unwrap()[..200].to_vec();
    let contents = [
        volume,
        foreign,
        cut,
        b"# Notes\n".to_vec(),
        b"run,plan\n".to_vec(),
    ];
    for (command, name, _) in &outputs {
        for content in &contents {
            fs::write(path(name), content).unwrap();
            let refused = sandbox.run(&format!("{command} {name}"));
            assert_eq!(
                refused.status.code(),
                Some(4),
                "{command} {name}: {refused:?}"
            );
            assert!(
                fs::read(path(name)).unwrap() == *content,
                "{command} {name}"
            );
        }
        fs::remove_file(path(name)).unwrap();
        for leads_to in ["record.json", "nothing"] {
            symlink(leads_to, path(name)).unwrap();
            let refused = sandbox.run(&format!("{command} {name}"));
            assert_eq!(
                refused.status.code(),
                Some(4),
                "{command} {name}: {refused:?}"
            );
            fs::remove_file(path(name)).unwrap();
        }
        assert!(!path("nothing").exists(), "{command}");
    }
    for (command, name, _) in outputs.iter().filter(|(_, _, recognised)| *recognised) {
        fs::write(path(name), "").unwrap();
        for _ in 0..2 {
            sandbox.ok(&format!("{command} {name}"));
        }
        fs::remove_file(path(name)).unwrap();
    }
    for (storage, output) in [("v", "v"), ("v", "./v"), ("./v", "v")] {
        let refused = sandbox.run(&format!("{run} --at {storage} --yes --json {output}"));
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
}

/// What is made under its name has it on the disk at the end.
#[test]
fn volumes_headers_and_folders_of_backups_have_their_names_on_the_disk() {
    let sandbox = sandbox();
    let folder = sandbox.directory().canonicalize().unwrap();
    for name in ["data", "headers"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let secret = format!("--passphrase-file pass {CHEAP}");
    for (command, folders) in [
        (
            format!("volume create data/d --size 1MiB --header headers/h {secret}"),
            &["/data", "/headers"][..],
        ),
        (
            format!("volume passwd v --new-passphrase-file pass {secret}"),
            &["", "/state", "/state/of", "/state/of/cryptmark/headers"],
        ),
    ] {
        let Some(calls) = traced(&sandbox, &command) else {
            return;
        };
        for name in folders {
            let named = format!("<{}{name}>", folder.display());
            let synced = |call: &String| call.contains("sync(") && call.contains(&named);
            assert!(calls.iter().any(synced), "{command}: {named}: {calls:#?}");
        }
    }
}

/// A file on a network, or a failing disk, says only then that it has not got all.
#[test]
fn what_is_given_to_standard_output_is_synced() {
    let sandbox = sandbox();
    let export = "volume export v --passphrase-file pass --output -";
    let Some(calls) = traced(&sandbox, export) else {
        return;
    };
    assert!(
        calls.iter().any(|call| call.contains("sync(")),
        "{calls:#?}"
    );
}

#[test]
fn content_then_name_then_folder() {
    let sandbox = sandbox();
    let folder = sandbox.directory().canonicalize().unwrap();
    for (command, name) in [
        ("volume export v --passphrase-file pass --output out", "out"),
        // Over another file.
        (
            "volume export v --passphrase-file pass --output out --yes",
            "out",
        ),
        ("volume header backup v --output saved", "saved"),
    ] {
        let Some(calls) = traced(&sandbox, command) else {
            return;
        };
        let named = calls.iter().position(|call| {
            (call.contains("rename") || call.contains("link"))
                && call.contains(&format!("{name}\""))
        });
        let named = named.unwrap_or_else(|| panic!("{command}: {calls:#?}"));
        let synced = |calls: &[String], what: &str| {
            calls
                .iter()
                .any(|call| call.contains("sync(") && call.contains(what))
        };
        // A draft has no name, where there are such files.
        let draft = format!("<{}/", folder.display());
        assert!(synced(&calls[..named], &draft), "{command}: {calls:#?}");
        let end = format!("<{}>", folder.display());
        assert!(synced(&calls[named..], &end), "{command}: {calls:#?}");
    }
}
