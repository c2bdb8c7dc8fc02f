//! `kill -9` of a server under fio: what fio has seen flushed is there, and
//! nothing is in the way of the next server.
//!
//! ```text
//! four jobs, each: write a block, …, sync     a round has one pattern, so that
//!   └─ its log: a line before each step       a block tells which round wrote it
//! ```
//!
//! A job has one request under way, so a step is done when a line follows it.

use crate::{MIB, create, given, sandbox, uri};
use block::BlockDevice;
use serve::nbd::{NbdDevice, Place};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use testkit::{Sandbox, have};

const JOBS: usize = 4;
const BLOCK: usize = 4096;
const SIZE: u64 = 16 * MIB;
const BLOCKS: usize = SIZE as usize / BLOCK;

/// What a block holds that fio wrote in a round.
fn pattern(round: u64, block: usize) -> Vec<u8> {
    let mut once = format!("r{round:05}").into_bytes();
    once.extend_from_slice(&((block * BLOCK) as u64).to_le_bytes());
    once.into_iter().cycle().take(BLOCK).collect()
}

/// What a job's log says of each block of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// Its write began.
    Begun,
    /// It was written and flushed.
    Flushed,
}

/// Reads the log of a job.
fn follow(log: &Path, seen: &mut [Seen]) {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut written = Vec::new();
    let mut syncing = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, _, step @ ("write" | "sync"), offset, _] = words[..] else {
            continue;
        };
        if syncing {
            for block in written.drain(..) {
                seen[block] = Seen::Flushed;
            }
        }
        syncing = step == "sync";
        if step == "write" {
            let block = offset.parse::<usize>().unwrap() / BLOCK;
            seen[block] = Seen::Begun;
            written.push(block);
        }
    }
}

/// A server that leaves nothing behind when a test fails.
struct Server<'a> {
    child: Child,
    sandbox: &'a Sandbox,
}

impl Server<'_> {
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn umount(mut self) {
        self.sandbox.ok("volume umount x.img");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = self.sandbox.cryptmark("volume umount x.img").output();
        }
    }
}

/// A way to the volume that fio and this test take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Nbd,
    Fuse,
}

impl Way {
    fn serve(self, sandbox: &Sandbox) -> Server<'_> {
        let way = match self {
            Self::Nbd => "--nbd disk.sock",
            Self::Fuse => "--fuse disk.raw",
        };
        let arguments = format!("volume serve x.img --passphrase-file line {way}");
        let mut child = sandbox
            .cryptmark(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut told = BufReader::new(child.stdout.take().unwrap());
        let server = Server { child, sandbox };
        told.read_line(&mut line).unwrap();
        assert!(line.starts_with("x.img is served: "), "{line}");
        server
    }

    /// fio, which writes every block once.
    fn fio(self, sandbox: &Sandbox, round: u64) -> Command {
        let mut fio = sandbox.command("fio", "--rw=randwrite --bs=4k --fsync=4 --do_verify=0");
        fio.args(["--iodepth=1", "--verify=pattern", "--output=/dev/null"])
            .arg(format!("--verify_pattern=\"r{round:05}\"%o"))
            .arg(format!("--randseed={round}"));
        match self {
            Self::Nbd => fio.args(["--ioengine=nbd", &format!("--uri={}", uri(sandbox))]),
            Self::Fuse => fio
                .args(["--ioengine=psync", "--filename=disk.raw"])
                .args(["--allow_file_create=0", "--fallocate=none"])
                .arg(format!("--direct={}", round % 2)),
        };
        let part = SIZE / JOBS as u64;
        for job in 0..JOBS as u64 {
            fio.arg(format!("--name=job{job}"))
                .arg(format!("--offset={}", job * part))
                .arg(format!("--size={part}"))
                .arg(format!("--write_iolog=job{job}.log"));
        }
        fio.stdout(Stdio::null()).stderr(Stdio::null());
        fio
    }

    fn read(self, sandbox: &Sandbox) -> Vec<u8> {
        let mut bytes = vec![0; SIZE as usize];
        match self {
            Self::Nbd => NbdDevice::connect(&Place::Unix(sandbox.path("disk.sock")), "")
                .unwrap()
                .read_at(0, &mut bytes)
                .unwrap(),
            Self::Fuse => bytes = sandbox.read("disk.raw"),
        }
        bytes
    }

    fn write(self, sandbox: &Sandbox, bytes: &[u8]) {
        match self {
            Self::Nbd => NbdDevice::connect(&Place::Unix(sandbox.path("disk.sock")), "")
                .unwrap()
                .write_at(0, bytes)
                .unwrap(),
            Self::Fuse => {
                use std::os::unix::fs::FileExt;
                let file = fs::File::options()
                    .write(true)
                    .open(sandbox.path("disk.raw"));
                file.unwrap().write_all_at(bytes, 0).unwrap();
            }
        }
    }
}

/// When the volume was written last.
fn written(sandbox: &Sandbox) -> SystemTime {
    fs::metadata(sandbox.path("x.img"))
        .unwrap()
        .modified()
        .unwrap()
}

/// Mounts on the file of a sandbox.
fn mounts(sandbox: &Sandbox) -> usize {
    let mounts = block::signature::mounts().unwrap();
    let file = sandbox.path("disk.raw");
    mounts
        .iter()
        .filter(|mount| mount.mount_point == file)
        .count()
}

fn survives(way: Way, kills: u64) {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 16 + SIZE / MIB);
    // The round that wrote what each block holds.
    let mut holds = vec![0_u64; BLOCKS];
    let server = way.serve(&sandbox);
    let first: Vec<u8> = (0..BLOCKS).flat_map(|block| pattern(0, block)).collect();
    way.write(&sandbox, &first);
    server.umount();

    let (mut cut, mut flushed) = (0, 0);
    for round in 1..=kills {
        for job in 0..JOBS {
            // There is none in the first round.
            let _ = fs::remove_file(sandbox.path(format!("job{job}.log")));
        }
        // What a killed server has left is no obstacle.
        let server = way.serve(&sandbox);
        let before = written(&sandbox);
        let mut fio = way.fio(&sandbox, round).spawn().unwrap();
        // Some servers die before fio has begun.
        while round % 8 != 0 && written(&sandbox) == before && fio.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round * 7919 % 250));
        server.kill();
        let begun = Instant::now();
        let ended = loop {
            match fio.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed() > Duration::from_secs(60) => {
                    let _ = fio.kill();
                    panic!("fio is stuck in round {round}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        cut += u64::from(!ended.success());
        let mut seen = vec![Seen::Nothing; BLOCKS];
        for job in 0..JOBS {
            follow(&sandbox.path(format!("job{job}.log")), &mut seen);
        }
        flushed += seen.iter().filter(|&&seen| seen == Seen::Flushed).count();
        assert!(mounts(&sandbox) <= 1);

        let server = way.serve(&sandbox);
        assert_eq!(mounts(&sandbox), usize::from(way == Way::Fuse));
        let found = way.read(&sandbox);
        for (block, found) in found.chunks_exact(BLOCK).enumerate() {
            let is = |round| found == pattern(round, block);
            let new = is(round);
            match seen[block] {
                Seen::Flushed => assert!(new, "block {block} of round {round} is lost"),
                Seen::Begun => assert!(new || is(holds[block]), "block {block} in {round}"),
                Seen::Nothing => assert!(is(holds[block]), "block {block} in round {round}"),
            }
            if new {
                holds[block] = round;
            }
        }
        server.umount();
        assert_eq!(mounts(&sandbox), 0);
        assert!(!sandbox.path("disk.raw").exists() && !sandbox.path("disk.sock").exists());
    }
    println!("{kills} kills, {cut} of them in fio's way; {flushed} blocks were flushed");
    assert!(cut > 0 && flushed > 0, "nothing was put to the test");
}

#[test]
fn nbd_servers_killed_under_fio_lose_nothing_flushed() {
    if have(&["fio"]) {
        survives(Way::Nbd, given("SERVER_KILLS", 6));
    }
}

#[test]
fn fuse_servers_killed_under_fio_lose_nothing_flushed() {
    let fuse = fs::File::options().read(true).write(true).open("/dev/fuse");
    if let Err(error) = fuse {
        return println!("skipped: mounts: /dev/fuse: {error}");
    }
    if have(&["fio", "fusermount3"]) {
        survives(Way::Fuse, given("SERVER_KILLS", 6));
    }
}
