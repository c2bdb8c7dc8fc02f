//! The states of a volume: what has become of its bytes, and of the disk below.

use crate::commands::{Command, Use};
use crate::kit::{COPY, Format, PATIENCE, PROGRAM, Volumes, seal};
use crate::states::{Outcome, REFUSED, Set, done, kill};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{self, Child, Stdio};
use std::sync::OnceLock;
use std::time::Instant;
use testkit::{CHEAP, wait_until};

/// Its size is what it is, and no other file takes its place.
pub fn on_a_fixed_size(command: &Command) -> Outcome {
    match command.name {
        "resize" | "export onto it" | "reencrypt --decrypt" => Outcome::Fails(1),
        // It is no whole backup.
        "header restore from it" => Outcome::Fails(2),
        _ => done(command),
    }
}

/// Another program goes through its data.
pub fn in_their_hands(command: &Command) -> Outcome {
    match command.is {
        Use::Writes | Use::Reads => REFUSED,
        Use::Looks => Outcome::Done,
    }
}

/// A reencryption has begun, and was stopped in the middle of a write: until it goes on,
/// nobody writes.
pub fn half_done(command: &Command) -> Outcome {
    match command.name {
        "passwd" | "key add" | "key kill" | "key kill --yes" | "header set" => REFUSED,
        "reencrypt --decrypt" | "reencrypt --encrypt" | "resize" | "import" => REFUSED,
        "mount" | "serve" => REFUSED,
        // It is `other` whose header this is said to be.
        "serve as the header" => REFUSED,
        // A header of before, which --yes puts there whatever is lost.
        "header restore" => Outcome::Loses(0),
        _ => Outcome::Done,
    }
}

/// There is no room for what is not there.
pub fn without_room(command: &Command) -> Outcome {
    match command.name {
        "create" | "create luks1" | "create plain" => Outcome::Fails(1),
        "run" => Outcome::Stops(1),
        "passwd" | "key add" | "key kill" | "key kill --yes" | "header set" | "reencrypt" => {
            Outcome::Stops(1)
        }
        "export onto it" | "header restore" | "reencrypt --decrypt" => Outcome::Fails(1),
        _ => done(command),
    }
}

/// A header that only newer programs understand.
pub fn foreign(command: &Command) -> Outcome {
    match command.name {
        "info" | "header backup" | "header restore from it" => Outcome::Keeps,
        "header repair" | "convert" | "lab run" => Outcome::Keeps,
        "create" | "create luks1" | "create plain" | "run" | "export onto it"
        | "header restore" => Outcome::Done,
        "reencrypt --encrypt" => REFUSED,
        _ => Outcome::Fails(2),
    }
}

/// A disk that does not give these bytes before they are written: nbdkit, as a file.
fn unread(sandbox: &Volumes, from: usize) -> Result<Set, String> {
    let folder = sandbox.path("");
    let (folder, to) = (folder.display(), from + COPY);
    let touches = format!(r#"[ "$4" -lt {to} ] && [ $(($4 + $3)) -gt {from} ]"#);
    let read = format!(
        r#"pread=cd {folder}; if [ ! -e healed ] && {touches}; then echo EIO it is bad >&2; exit 1; fi;
           dd if=image skip="$4" count="$3" iflag=count_bytes,skip_bytes status=none"#
    );
    let write = format!(
        r#"pwrite=cd {folder}; if {touches}; then touch healed; fi;
           dd of=image seek="$4" oflag=seek_bytes conv=notrunc status=none"#
    );
    sandbox.write("disk", "");
    let mut command = sandbox.command(
        "nbdfuse",
        "disk --command nbdkit --single --exit-with-parent eval",
    );
    command
        .arg(format!("get_size=stat -c %s {folder}/image"))
        .args([&read, &write])
        .args(["flush=true", "can_write=true", "can_flush=true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command
        .spawn()
        .map_err(|error| format!("nbdfuse: {error}"))?;
    let disk = sandbox.path("disk");
    let end = disk.clone();
    let unmount = move || {
        let mut child = child;
        // What a program had open may be closed a little after its end.
        let gone = || {
            let mut unmount = process::Command::new("fusermount3");
            let done = unmount.arg("-u").arg(&end).stderr(Stdio::null()).status();
            done.unwrap().success()
        };
        wait_until("the disk is in use", gone);
        child.wait().unwrap();
    };
    let set = Set::at("disk").then(unmount);
    wait_until("nbdfuse does not begin", || {
        fs::metadata(&disk).unwrap().len() > 0
    });
    Ok(set)
}

pub fn first_copy_unread(sandbox: &Volumes) -> Result<Set, String> {
    unread(sandbox, sandbox.copies()[0])
}

pub fn second_copy_unread(sandbox: &Volumes) -> Result<Set, String> {
    unread(sandbox, sandbox.copies()[1])
}

/// Starts a reencryption; whether it has come to the data when it is sent the signal `name`.
fn stopped(
    sandbox: &Volumes,
    program: &str,
    arguments: &str,
    name: &str,
) -> Result<Option<Child>, String> {
    let mut command = sandbox.command(program, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let begun = Instant::now();
    // Within the data: a hot zone is marked.
    while !String::from_utf8_lossy(&sandbox.read("image")[..2 * COPY]).contains("in-reencryption") {
        if child.try_wait().unwrap().is_some() {
            return Ok(None);
        }
        assert!(begun.elapsed() < PATIENCE, "{program} does not begin");
    }
    signal(&child, name);
    Ok(Some(child))
}

fn signal(child: &Child, name: &str) {
    let number = child.id().to_string();
    let sent = process::Command::new("kill")
        .args(["-s", name, &number])
        .status();
    assert!(sent.unwrap().success());
}

/// Whether both copies of the header say that it is in the middle of a write.
fn is_half_done(sandbox: &Volumes) -> bool {
    let image = sandbox.read("image");
    let is_hot = |copy: &[u8]| String::from_utf8_lossy(copy).contains("in-reencryption");
    image[..2 * COPY].chunks(COPY).all(is_hot)
}

/// How often a reencryption is begun until it is met in the middle.
const TRIES: usize = 50;

const THEIRS: &str = "reencrypt image --batch-mode --force-offline-reencrypt --hotzone-size 4k \
     --key-file key --key-slot 0 --pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/// Stopped where it has not locked the file, which it does for moments only: what protects
/// it is the lock of the reencryption, of which the header tells.
pub fn reencrypted_by_them(sandbox: &Volumes) -> Result<Set, String> {
    sandbox.write_key("pass");
    let before = sandbox.read("image");
    for _ in 0..TRIES {
        sandbox.write("image", &before);
        let Some(mut child) = stopped(sandbox, "cryptsetup", THEIRS, "STOP")? else {
            continue;
        };
        while sandbox.try_run("flock", "--nonblock image true").is_err() {
            signal(&child, "CONT");
            signal(&child, "STOP");
            if child.try_wait().unwrap().is_some() {
                break;
            }
        }
        if child.try_wait().unwrap().is_none() {
            return Ok(Set::at("image").then(move || kill(child)));
        }
    }
    panic!("cryptsetup is always done before it can be stopped");
}

/// Kills a reencryption before it ends; once, and copies what is left of the volume.
fn interrupted(
    sandbox: &Volumes,
    once: &OnceLock<Result<Vec<u8>, String>>,
    program: &str,
    arguments: &str,
) -> Result<Set, String> {
    let bytes = once.get_or_init(|| {
        for _ in 0..TRIES {
            let sandbox = Volumes::new(Format::Luks2);
            sandbox.write_key("pass");
            if let Some(mut child) = stopped(&sandbox, program, arguments, "KILL")? {
                child.wait().unwrap();
                if is_half_done(&sandbox) {
                    return Ok(sandbox.read("image"));
                }
            }
        }
        panic!("{program} is always done before it can be killed");
    });
    sandbox.write("image", bytes.clone()?);
    Ok(Set::at("image"))
}

pub fn interrupted_by_us(sandbox: &Volumes) -> Result<Set, String> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let arguments = format!("volume reencrypt image --passphrase-file pass {CHEAP} --yes");
    interrupted(sandbox, &BYTES, PROGRAM, &arguments)
}

pub fn interrupted_by_them(sandbox: &Volumes) -> Result<Set, String> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    interrupted(sandbox, &BYTES, "cryptsetup", THEIRS)
}

/// A file with holes, on a disk that has no room for what they become.
pub fn on_full_disk(sandbox: &Volumes) -> Result<Set, String> {
    let at = sandbox.path("full");
    fs::create_dir(&at).unwrap();
    sandbox.try_run(
        "mount",
        &format!("-t tmpfs -o size=8m none {}", at.display()),
    )?;
    let end = at.clone();
    let bytes = sandbox.path("image");
    let unmount = move || {
        // What is looked at afterwards is the file.
        fs::remove_file(&bytes).unwrap();
        fs::copy(end.join("image"), &bytes).unwrap();
        let done = process::Command::new("umount")
            .arg("--lazy")
            .arg(&end)
            .status();
        assert!(done.unwrap().success());
    };
    let set = Set::at("full/image").then(unmount);
    // The data is noise but for the first half.
    sandbox.try_run("cp", "--sparse=always image full/image")?;
    fs::remove_file(sandbox.path("image")).unwrap();
    std::os::unix::fs::symlink("full/image", sandbox.path("image")).unwrap();
    let mut filler = fs::File::create(at.join("filler")).unwrap();
    while filler.write_all(&[0x55; 4096]).is_ok() {}
    Ok(set)
}

/// Changes the JSON of both copies.
fn edit(sandbox: &Volumes, edit: impl Fn(&mut Value)) {
    let mut bytes = sandbox.read("image");
    for at in [0, COPY] {
        let copy = &mut bytes[at..][..COPY];
        let end = copy[4096..].iter().position(|byte| *byte == 0).unwrap();
        let mut json: Value = serde_json::from_slice(&copy[4096..][..end]).unwrap();
        edit(&mut json);
        copy[4096..].fill(0);
        let text = json.to_string();
        copy[4096..][..text.len()].copy_from_slice(text.as_bytes());
        seal(copy);
    }
    sandbox.write("image", bytes);
}

/// It says where its material is, and nothing else that this program knows.
pub fn with_foreign_keyslot(sandbox: &Volumes) -> Result<Set, String> {
    edit(sandbox, |json| {
        let area = json!({ "type": "raw", "offset": "1048576", "size": "4096" });
        json["keyslots"]["5"] = json!({ "type": "foreign", "key_size": 64, "area": area });
    });
    Ok(Set::at("image"))
}

/// Taken away in the end, so that both programs can open it again.
pub fn with_foreign_requirement(sandbox: &Volumes) -> Result<Set, String> {
    let (path, before) = (sandbox.path("image"), sandbox.read("image"));
    edit(sandbox, |json| {
        json["config"]["requirements"] = json!({ "mandatory": ["foreign"] });
    });
    let changed = sandbox.read("image");
    let restore = move || {
        if fs::read(&path).unwrap() == changed {
            fs::write(&path, before).unwrap();
        }
    };
    Ok(Set::at("image").then(restore))
}

/// It has bytes behind its last sector.
pub fn with_a_tail(sandbox: &Volumes) -> Result<Set, String> {
    let file = fs::File::options().append(true).open(sandbox.path("image"));
    file.unwrap().write_all(&[0x55; 100]).unwrap();
    Ok(Set::at("image"))
}

fn spoilt_at(sandbox: &Volumes, offset: usize) -> Result<Set, String> {
    let mut bytes = sandbox.read("image");
    // Within the JSON, or within what is encrypted.
    let within = match sandbox.format {
        Format::Luks2 => 4096 + 20,
        Format::Veracrypt => 100,
    };
    bytes[offset + within] ^= 1;
    sandbox.write("image", bytes);
    Ok(Set::at("image"))
}

pub fn first_copy_spoilt(sandbox: &Volumes) -> Result<Set, String> {
    spoilt_at(sandbox, sandbox.copies()[0])
}

pub fn second_copy_spoilt(sandbox: &Volumes) -> Result<Set, String> {
    spoilt_at(sandbox, sandbox.copies()[1])
}

pub fn wiped(sandbox: &Volumes) -> Result<Set, String> {
    let mut bytes = sandbox.read("image");
    for at in sandbox.copies() {
        bytes[at..][..COPY].fill(0);
    }
    sandbox.write("image", bytes);
    Ok(Set::at("image"))
}
