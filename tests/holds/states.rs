//! The states of a volume: who else has it.

use crate::commands::{Command, Use};
use crate::kit::{Format, Volumes};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{self, Child, Stdio};
use testkit::wait_until;

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 0, and no byte is another one: there is nothing to do.
    Keeps,
    /// This exit code, and what was there is lost: the user has confirmed that.
    Loses(i32),
    /// This exit code after it had begun to write; what opens the volume still does.
    Stops(i32),
    /// This exit code, two lines, and nothing changed.
    Fails(i32),
}

/// A state that a volume can be in.
pub struct State {
    /// As in "a volume that is …".
    pub name: &'static str,
    /// What the volume is.
    pub format: Format,
    /// Brings `image` of a sandbox into it, or says why that cannot be here.
    pub set_up: fn(&Volumes) -> Result<Set, String>,
    /// What becomes of commands.
    pub expected: fn(&Command) -> Outcome,
    /// What every refusal says, among other things.
    pub says: &'static [&'static str],
    /// The passphrases that open it.
    pub opens: &'static [&'static str],
}

/// A state that lasts until it is dropped.
pub struct Set {
    /// What commands are given for the volume.
    pub target: String,
    pub ends: Vec<Box<dyn FnOnce()>>,
}

impl Set {
    pub fn at(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            ends: Vec::new(),
        }
    }

    /// Runs `end` when it is dropped, before what was said earlier.
    pub fn then(mut self, end: impl FnOnce() + 'static) -> Self {
        self.ends.push(Box::new(end));
        self
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        while let Some(end) = self.ends.pop() {
            end();
        }
    }
}

/// Ends a process that was started for a state.
pub fn kill(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

pub const REFUSED: Outcome = Outcome::Fails(4);

pub fn done(command: &Command) -> Outcome {
    match command.name {
        // It is encrypted.
        "reencrypt --encrypt" => REFUSED,
        _ => Outcome::Done,
    }
}

/// Somebody writes to it.
pub fn written(command: &Command) -> Outcome {
    match command.is {
        Use::Writes | Use::Reads => REFUSED,
        Use::Looks => Outcome::Done,
    }
}

/// Somebody reads it, or uses it in another way that readers do not mind.
pub fn read(command: &Command) -> Outcome {
    match command.is {
        Use::Writes => REFUSED,
        Use::Reads | Use::Looks => Outcome::Done,
    }
}

/// Nobody can write to it.
pub fn unwritable(command: &Command) -> Outcome {
    match command.is {
        Use::Writes => Outcome::Fails(2),
        Use::Reads | Use::Looks => Outcome::Done,
    }
}

/// It has no header: what does not need one is done.
pub fn headless(command: &Command) -> Outcome {
    match command.name {
        "create" | "create luks1" | "create plain" | "run" | "header restore" => Outcome::Done,
        "export onto it" | "reencrypt --encrypt" => Outcome::Done,
        "lab run" => Outcome::Keeps,
        _ => Outcome::Fails(2),
    }
}

pub fn free(_: &Volumes) -> Result<Set, String> {
    Ok(Set::at("image"))
}

fn served_with(sandbox: &Volumes, options: &str) -> Result<Set, String> {
    let pass = sandbox.pass();
    let arguments = format!("serve image {pass} --nbd disk.sock --daemon {options}");
    sandbox.volume(&arguments);
    let mut umount = sandbox.cryptmark("volume umount image");
    Ok(Set::at("image").then(move || assert!(umount.status().unwrap().success())))
}

pub fn served(sandbox: &Volumes) -> Result<Set, String> {
    served_with(sandbox, "")
}

pub fn served_read_only(sandbox: &Volumes) -> Result<Set, String> {
    served_with(sandbox, "--read-only")
}

fn mounted_with(sandbox: &Volumes, options: &str) -> Result<Set, String> {
    let fuse = fs::File::options().read(true).write(true).open("/dev/fuse");
    fuse.map_err(|error| format!("/dev/fuse: {error}"))?;
    let at = sandbox.path("d");
    fs::create_dir(&at).unwrap();
    let pass = sandbox.pass();
    sandbox.volume(&format!(
        "mount image d --as file {pass} --daemon {options}"
    ));
    let mut umount = sandbox.cryptmark("volume umount d");
    Ok(Set::at("image").then(move || assert!(umount.status().unwrap().success())))
}

pub fn mounted(sandbox: &Volumes) -> Result<Set, String> {
    mounted_with(sandbox, "")
}

pub fn mounted_read_only(sandbox: &Volumes) -> Result<Set, String> {
    mounted_with(sandbox, "--read-only")
}

/// Another command has begun to write, and is not done.
pub fn imported(sandbox: &Volumes) -> Result<Set, String> {
    let pass = sandbox.pass();
    let arguments = format!("volume import image {pass} --input - --yes --no-progress");
    let mut child = sandbox
        .cryptmark(&arguments)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It ends by the end of its input.
    let input = child.stdin.take();
    sandbox.wait_for_writer("image");
    Ok(Set::at("image").then(move || {
        drop(input);
        child.wait().unwrap();
    }))
}

pub fn exported(sandbox: &Volumes) -> Result<Set, String> {
    let pass = sandbox.pass();
    let arguments = format!("volume export image {pass} --output - --no-progress");
    let mut child = sandbox
        .cryptmark(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A pipe holds less than the volume: it waits.
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    Ok(Set::at("image")
        .then(move || kill(child))
        .then(move || drop(out)))
}

fn linked(
    sandbox: &Volumes,
    link: impl Fn(PathBuf, PathBuf) -> std::io::Result<()>,
) -> Result<Set, String> {
    link(sandbox.path("image"), sandbox.path("link")).unwrap();
    let mut set = served(sandbox)?;
    set.target = "link".into();
    Ok(set)
}

pub fn hard_linked(sandbox: &Volumes) -> Result<Set, String> {
    linked(sandbox, fs::hard_link)
}

pub fn soft_linked(sandbox: &Volumes) -> Result<Set, String> {
    linked(sandbox, std::os::unix::fs::symlink)
}

/// Seen by another mount of its folder, and served by the first.
pub fn bound(sandbox: &Volumes) -> Result<Set, String> {
    let at = sandbox.path("bound");
    fs::create_dir(&at).unwrap();
    let folder = sandbox.path("");
    sandbox.try_run(
        "mount",
        &format!("--bind {} {}", folder.display(), at.display()),
    )?;
    let unmount = move || {
        let done = process::Command::new("umount")
            .arg("--lazy")
            .arg(&at)
            .status();
        assert!(done.unwrap().success());
    };
    let mut set = Set::at("bound/image").then(unmount);
    let mut inner = served(sandbox)?;
    set.ends.append(&mut inner.ends);
    Ok(set)
}

pub fn locked(sandbox: &Volumes) -> Result<Set, String> {
    let mut child = sandbox
        .command("flock", "--exclusive image cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("flock: {error}"))?;
    // It answers when it has the lock.
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"x").unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    Ok(Set::at("image").then(move || {
        drop(input);
        child.wait().unwrap();
    }))
}

/// A loop device on the file `name`, which the command is given or not.
fn looped(sandbox: &Volumes, name: &str) -> Result<(Set, PathBuf), String> {
    let device = sandbox.try_run("losetup", &format!("--find --show {name}"))?;
    let device = PathBuf::from(device.trim());
    let end = device.clone();
    let detach = move || {
        let done = process::Command::new("losetup")
            .arg("--detach")
            .arg(end)
            .status();
        assert!(done.unwrap().success());
    };
    Ok((Set::at("image").then(detach), device))
}

pub fn below_a_loop(sandbox: &Volumes) -> Result<Set, String> {
    Ok(looped(sandbox, "image")?.0)
}

/// By a link: the loop device has another name for it.
pub fn below_a_loop_by_a_link(sandbox: &Volumes) -> Result<Set, String> {
    fs::hard_link(sandbox.path("image"), sandbox.path("link")).unwrap();
    Ok(looped(sandbox, "link")?.0)
}

/// The file is served, and the command is given a loop device on it.
pub fn served_below_a_loop(sandbox: &Volumes) -> Result<Set, String> {
    let mut served = served(sandbox)?;
    let (mut set, device) = looped(sandbox, "image")?;
    served.ends.append(&mut set.ends);
    served.target = device.display().to_string();
    Ok(served)
}

/// A loop device that is served.
pub fn served_loop(sandbox: &Volumes) -> Result<Set, String> {
    let (mut set, device) = looped(sandbox, "image")?;
    let shown = device.display().to_string();
    let pass = sandbox.pass();
    sandbox.volume(&format!("serve {shown} {pass} --nbd disk.sock --daemon"));
    let mut umount = sandbox.cryptmark(&format!("volume umount {shown}"));
    set.target = shown;
    Ok(set.then(move || assert!(umount.status().unwrap().success())))
}

/// A loop device that another program has for itself.
pub fn held_loop(sandbox: &Volumes) -> Result<Set, String> {
    let (mut set, device) = looped(sandbox, "image")?;
    let alone = fs::File::options()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::EXCL.bits() as i32)
        .open(&device)
        .map_err(|error| error.to_string())?;
    set.target = device.display().to_string();
    Ok(set.then(move || drop(alone)))
}

/// A loop device that cannot be written to.
pub fn read_only_loop(sandbox: &Volumes) -> Result<Set, String> {
    let (mut set, device) = looped(sandbox, "--read-only image")?;
    set.target = device.display().to_string();
    Ok(set)
}

/// Another program serves it, and locks it in its own way.
pub fn served_by_qemu(sandbox: &Volumes) -> Result<Set, String> {
    let socket = sandbox.path("disk.sock");
    let arguments = format!(
        "--persistent --format=raw --socket={} image",
        socket.display()
    );
    let child = sandbox
        .command("qemu-nbd", &arguments)
        .spawn()
        .map_err(|error| format!("qemu-nbd: {error}"))?;
    let set = Set::at("image").then(move || kill(child));
    wait_until("qemu-nbd does not serve", || socket.exists());
    Ok(set)
}

/// A reencryption that has begun to look for its key derivation.
pub fn reencrypted(sandbox: &Volumes) -> Result<Set, String> {
    let arguments = "volume reencrypt image --passphrase-file pass --iter-time 600000 --yes";
    let child = sandbox
        .cryptmark(arguments)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    sandbox.wait_for_writer("image");
    Ok(Set::at("image").then(move || kill(child)))
}

/// Its header is in a file of its own, by which it is served.
pub fn served_apart(sandbox: &Volumes) -> Result<Set, String> {
    let arguments = "serve apart --header header --passphrase-file pass --nbd disk.sock --daemon";
    sandbox.volume(arguments);
    let mut umount = sandbox.cryptmark("volume umount apart");
    let end = move || assert!(umount.status().unwrap().success());
    Ok(Set::at("apart --header header").then(end))
}
