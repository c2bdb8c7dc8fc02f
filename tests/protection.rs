//! What the program keeps to itself: keys and passphrases in its memory, files that
//! hold them, programs that it runs, places that it mounts on.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{CHEAP, Expect as _, Running, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
const PASSPHRASE: &str = "correct horse battery staple 4711";
/// A user who is nobody in particular.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A sandbox with a LUKS2 volume in `image`, its volume key in `key`, and its passphrase in `line`.
fn sandbox() -> Sandbox {
    let mut key = [0; 64];
    let mut random = File::open("/dev/urandom").unwrap();
    random.read_exact(&mut key).unwrap();
    let sandbox = Sandbox::new(PROGRAM)
        .with_file("key", key)
        .with_file("line", PASSPHRASE);
    sandbox.volume(&format!(
        "create image --size 20MiB --volume-key-file key --passphrase-file line {CHEAP}"
    ));
    sandbox
}

/// The part of the volume key with which a key schedule of AES begins.
fn key_part(sandbox: &Sandbox) -> Vec<u8> {
    sandbox.read("key")[..16].to_vec()
}

/// Serves the image, allowed to dump cores of any size; the passphrase comes through
/// a pipe.
fn serve(sandbox: &Sandbox, change: impl FnOnce(&mut Command)) -> Running {
    let script = "ulimit -c unlimited; \
                  exec \"$0\" volume serve image --nbd disk.sock --passphrase-file -";
    let mut command = sandbox.command("sh", &["-c", script, PROGRAM]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    change(&mut command);
    let mut serving = Running::start(&mut command);
    let mut stdin = serving.0.stdin.take().unwrap();
    writeln!(stdin, "{PASSPHRASE}").unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(serving.0.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    assert!(line.contains("is served"), "{line}");
    serving
}

/// Whether some memory of it that may be read holds `wanted`: root sees all of it.
fn holds(serving: &Running, wanted: &[u8]) -> bool {
    let id = serving.0.id();
    let maps = fs::read_to_string(format!("/proc/{id}/maps")).unwrap();
    let memory = File::open(format!("/proc/{id}/mem")).unwrap();
    maps.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        if !rights.starts_with("rw") || number(end) - number(start) > 1 << 30 {
            return false;
        }
        let mut bytes = vec![0; (number(end) - number(start)) as usize];
        let read = memory.read_at(&mut bytes, number(start)).unwrap_or(0);
        has(&bytes[..read], wanted)
    })
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn no_core_is_dumped() {
    let sandbox = sandbox();
    let control = ["-c", "ulimit -c unlimited; kill -QUIT $$"];
    let control = sandbox.command("sh", &control).status().unwrap();
    if !control.core_dumped() {
        return println!("skipped: this machine dumps no cores at all");
    }
    for signal in ["-QUIT", "-ABRT", "-ILL"] {
        let mut serving = serve(&sandbox, |_| ());
        if is_root() {
            assert!(
                holds(&serving, &key_part(&sandbox)),
                "the key is nowhere: the search is wrong"
            );
        }
        let limits = fs::read_to_string(format!("/proc/{}/limits", serving.0.id())).unwrap();
        let cores = "Max core file size        0 ";
        assert!(limits.contains(cores), "{limits}");
        serving.signal(signal);
        let status = serving.0.wait().unwrap();
        assert!(
            status.signal().is_some() && !status.core_dumped(),
            "{signal}: {status}"
        );
        for entry in fs::read_dir(sandbox.directory()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && !path.ends_with("key") {
                let bytes = fs::read(&path).unwrap();
                assert!(
                    !has(&bytes, &key_part(&sandbox)),
                    "{signal}: {}",
                    path.display()
                );
            }
        }
        // Nobody was there any more to remove it.
        let _ = fs::remove_file(sandbox.path("disk.sock"));
    }
}

#[test]
fn a_passphrase_is_gone_when_the_volume_is_open() {
    if !is_root() {
        return println!("skipped: only root sees the memory of the server");
    }
    let sandbox = sandbox();
    let serving = serve(&sandbox, |_| ());
    assert!(
        holds(&serving, &key_part(&sandbox)),
        "the key is nowhere: the search is wrong"
    );
    assert!(!holds(&serving, PASSPHRASE.as_bytes()));
}

#[test]
fn processes_of_the_same_user_cannot_look() {
    if !is_root() {
        return println!("skipped: only root starts processes of another user");
    }
    let sandbox = sandbox();
    for path in [
        sandbox.directory(),
        &sandbox.path("image"),
        &sandbox.path("line"),
    ] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fs::set_permissions(sandbox.directory(), fs::Permissions::from_mode(0o700)).unwrap();
    let by_nobody = |command: &mut Command| {
        command
            .uid(NOBODY)
            .gid(NOBODY)
            .env("XDG_RUNTIME_DIR", sandbox.directory());
    };
    let look = |process: u32, file: &str| {
        let mut look = Command::new("sh");
        look.args(["-c", &format!(": < /proc/{process}/{file}")]);
        by_nobody(&mut look);
        look.stderr(Stdio::null()).status().unwrap().success()
    };
    let mut control = Command::new("sleep");
    control.arg("60");
    by_nobody(&mut control);
    let control = Running::start(&mut control);
    if !["mem", "environ", "auxv"]
        .iter()
        .all(|file| look(control.0.id(), file))
    {
        return println!("skipped: no process of the same user may look here");
    }
    let serving = serve(&sandbox, by_nobody);
    for file in ["mem", "environ", "auxv"] {
        assert!(!look(serving.0.id(), file), "{file}");
    }
}

#[test]
fn what_follows_the_passphrase_is_left_to_others() {
    let sandbox = sandbox();
    let script = "\"$0\" volume open image --passphrase-file - >&2 && cat";
    let mut shell = sandbox
        .command("sh", &["-c", script, PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    write!(stdin, "{PASSPHRASE}\nfor cat").unwrap();
    drop(stdin);
    let output = shell.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "for cat");
}

/// As strace prints bytes with -xx.
fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[test]
fn no_secret_is_written_or_handed_on() {
    if Command::new("strace").arg("-V").output().is_err() {
        return println!("skipped: strace is not installed");
    }
    let sandbox = sandbox();
    sandbox.write("second", "another passphrase 1147");
    for arguments in [
        format!("volume create fresh --size 20MiB --passphrase-file - {CHEAP}"),
        "volume open image --passphrase-file -".to_owned(),
        format!("volume key add image --passphrase-file - --new-key-file second {CHEAP}"),
        "volume info image".to_owned(),
    ] {
        let mut traced = sandbox.command("strace", "-f -qq -xx -s 65536 -o trace");
        let mut traced = traced
            .arg(PROGRAM)
            .args(arguments.split_whitespace())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // `info` asks for nothing.
        let _ = writeln!(traced.stdin.take().unwrap(), "{PASSPHRASE}");
        let output = traced.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("ptrace") && !output.status.success() {
            return println!("skipped: strace may not trace here");
        }
        assert!(output.status.success(), "{arguments}: {said}");
        let trace = sandbox.read_text("trace");
        // Byte by byte, a passphrase is never whole in a call that reads it; four
        // letters together are in no other call.
        let passphrase = in_hexadecimal(&PASSPHRASE.as_bytes()[..4]);
        let key = in_hexadecimal(&key_part(&sandbox)[..8]);
        let second = in_hexadecimal(b"another passphrase");
        let reads = |line: &&str| line.contains(" read(") || line.contains(" pread64(");
        for line in trace.lines().filter(|line| !reads(line)) {
            for secret in [&passphrase, &key, &second] {
                assert!(!line.contains(secret.as_str()), "{arguments}: {line}");
            }
        }
        if arguments.contains("key add") {
            assert!(
                trace
                    .lines()
                    .filter(reads)
                    .any(|line| line.contains(&second))
            );
        }
    }
    // What the ring writes is in no call.
    for image in ["image", "fresh"] {
        let bytes = sandbox.read(image);
        for secret in [
            PASSPHRASE.as_bytes(),
            &key_part(&sandbox),
            b"another passphrase",
        ] {
            assert!(!has(&bytes, secret), "{image}");
        }
    }
}

#[test]
fn files_that_hold_keys_are_their_owners_alone() {
    let sandbox = sandbox();
    for umask in ["000", "022", "077"] {
        let name = |what: &str| format!("{what}-{umask}");
        let arguments = [
            format!(
                "volume create {} --size 20MiB --header {} --passphrase-file line {CHEAP}",
                name("image"),
                name("header")
            ),
            format!("volume header backup image --output {}", name("backup")),
        ];
        for arguments in arguments {
            let script = format!("umask {umask}; exec \"$0\" {arguments}");
            sandbox.tool("sh", &["-c", &script, PROGRAM]);
        }
        for what in ["image", "header", "backup"] {
            let mode = fs::metadata(sandbox.path(name(what))).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{} {mode:o}", name(what));
        }
    }
}

#[test]
fn root_runs_no_program_of_somebody_elses() {
    if !is_root() {
        return println!("skipped: root's programs are looked for by root alone");
    }
    let sandbox = sandbox();
    let folder = sandbox.path("evil");
    fs::create_dir(&folder).unwrap();
    let marker = sandbox.path("marker");
    let put = |name: &str| {
        let text = format!("#!/bin/sh\necho {name} >> {}\nexit 1\n", marker.display());
        fs::write(folder.join(name), text).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in [
        "mount",
        "umount",
        "fuse2fs",
        "fstrim",
        "mkfs.ext4",
        "unshare",
        "modprobe",
        "qemu-nbd",
        "nbdkit",
        "veracrypt",
        "java",
        "sh",
        "gcc",
    ] {
        put(name);
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    fs::create_dir(sandbox.path("mnt")).unwrap();
    for arguments in [
        "doctor",
        "volume mount image mnt --as fs --passphrase-file line",
    ] {
        // Whether it can be done here is not the question.
        let _ = sandbox
            .cryptmark(arguments)
            .env("PATH", &path)
            .output()
            .unwrap();
        let ran = fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(ran, "", "{arguments}");
    }
    // A library looks for this one by itself: then root does without the mount.
    put("fusermount3");
    let by_path = ("PATH", path.into());
    let by_name = (
        "FUSERMOUNT_PATH",
        folder.join("fusermount3").into_os_string(),
    );
    for (name, value) in [by_path, by_name] {
        let arguments = "volume mount image mnt --as file --passphrase-file line";
        sandbox.cryptmark(arguments).env(name, value).ends(1);
        assert!(!marker.exists(), "{name}");
    }
    // The programs there are ones that would have said so.
    assert!(
        !Command::new(folder.join("mount"))
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(fs::read_to_string(&marker).unwrap(), "mount\n");
}

#[test]
fn volumes_are_not_mounted_over_the_system_or_over_files() {
    let sandbox = sandbox();
    let mount = |place: &str, more: &str| {
        sandbox
            .run(&format!(
                "volume mount image {place} --as file --passphrase-file line {more}"
            ))
            .status
            .code()
    };
    for place in [
        "/", "/usr", "/usr/bin", "/etc", "/home", "/tmp", "/var/lib", "/dev",
    ] {
        for more in ["", "--yes"] {
            assert_eq!(mount(place, more), Some(4), "{place} {more}");
        }
    }
    std::os::unix::fs::symlink("/etc", sandbox.path("link")).unwrap();
    assert_eq!(mount("link", "--yes"), Some(4));
    fs::create_dir(sandbox.path("full")).unwrap();
    sandbox.write("full/mine", "mine");
    assert_eq!(mount("full", ""), Some(4));
    assert_eq!(mount("absent", ""), Some(2));
    let over_file = "volume serve image --fuse /etc/cryptmark-test --passphrase-file line";
    assert_eq!(sandbox.run(over_file).status.code(), Some(4));
    assert!(!Path::new("/etc/cryptmark-test").exists());
    if is_root() && File::open("/dev/fuse").is_ok() {
        assert_eq!(mount("full", "--yes --daemon"), Some(0));
        assert!(!sandbox.path("full/mine").exists() && sandbox.path("full/volume").exists());
        sandbox.ok("volume umount full");
        assert_eq!(sandbox.read("full/mine"), b"mine");
    }
}

#[test]
fn plaintext_for_other_machines_is_asked_for() {
    let sandbox = sandbox();
    for place in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let serve = format!("volume serve image --passphrase-file line --nbd {place}");
        let output = sandbox.cryptmark(&serve).ends(4);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("read and change") && said.contains("--yes"),
            "{said}"
        );
    }
    let start = |place: &str| {
        let arguments = format!("volume serve image --passphrase-file line --nbd {place}");
        let mut command = sandbox.cryptmark(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut serving = Running::start(&mut command);
        let mut line = String::new();
        let mut told = BufReader::new(serving.0.stdout.take().unwrap());
        told.read_line(&mut line).unwrap();
        assert!(line.contains("is served"), "{place}: {line}");
        serving.signal("-TERM");
        let mut said = String::new();
        let mut errors = serving.0.stderr.take().unwrap();
        errors.read_to_string(&mut said).unwrap();
        assert!(serving.0.wait().unwrap().success());
        said
    };
    let warned = start("0.0.0.0:0 --yes");
    assert!(
        warned.starts_with("warning: every client that reaches 0.0.0.0:0"),
        "{warned}"
    );
    for place in [":0", "127.0.0.1:0", "localhost:0", "disk.sock"] {
        assert_eq!(start(place), "");
    }
}

#[test]
fn clients_learn_nothing_of_where_the_image_is() {
    let sandbox = sandbox();
    let _serving = serve(&sandbox, |_| ());
    let mut client = UnixStream::connect(sandbox.path("disk.sock")).unwrap();
    client.read_exact(&mut [0; 18]).unwrap();
    client.write_all(&3_u32.to_be_bytes()).unwrap();
    // NBD_OPT_LIST, then NBD_OPT_INFO of the default export: name and description.
    client.write_all(b"IHAVEOPT\0\0\0\x03\0\0\0\0").unwrap();
    client
        .write_all(b"IHAVEOPT\0\0\0\x06\0\0\0\x0a\0\0\0\0\0\x02\0\x01\0\x02")
        .unwrap();
    // NBD_OPT_ABORT: the server says no more after it.
    client.write_all(b"IHAVEOPT\0\0\0\x02\0\0\0\0").unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert!(said.len() > 100, "{said:02x?}");
    let folder = sandbox.directory().to_str().unwrap().as_bytes();
    assert!(!has(&said, folder) && !has(&said, b"image"), "{said:02x?}");
}
