//! `volume serve`, with the clients that people have.

mod confined;
mod ends;
mod killed;
#[cfg(feature = "tls")]
mod tls;

use block::{BlockDevice, BlockError};
use serve::nbd::{NbdDevice, Place};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{CHEAP, Expect as _, Running, Sandbox, have, noise, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
const MIB: u64 = 1 << 20;

/// A sandbox with a passphrase in `line`.
fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM)
        .with_file("line", "a passphrase\n")
        .with_file("wrong", "another\n")
}

/// Makes a volume of so many MiB.
fn create(sandbox: &Sandbox, image: &str, mib: u64) {
    sandbox.volume(&format!(
        "create {image} --size {mib}MiB --passphrase-file line {CHEAP}"
    ));
}

fn served(sandbox: &Sandbox, image: &str, options: &str) -> Serving {
    let arguments =
        format!("volume serve {image} --passphrase-file line --nbd disk.sock {options}");
    let mut command = sandbox.cryptmark(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Running::start(&mut command);
    let mut line = String::new();
    let mut told = BufReader::new(program.0.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    let expected = format!(
        "{image} is served: {}\n",
        sandbox.path("disk.sock").display()
    );
    assert_eq!(line, expected, "{arguments}");
    Serving {
        stderr: program.0.stderr.take().unwrap(),
        program,
        socket: sandbox.path("disk.sock"),
    }
}

/// What is said of a volume of this sandbox that is served, or was.
fn service_of(sandbox: &Sandbox, image: &str) -> Option<serde_json::Value> {
    let all = sandbox.json("volume status --json");
    let image = sandbox.path(image).canonicalize().unwrap();
    let mut all = all.as_array().unwrap().iter();
    all.find(|service| service["image"] == image.to_str().unwrap())
        .cloned()
}

fn uri(sandbox: &Sandbox) -> String {
    format!(
        "nbd+unix:///?socket={}",
        sandbox.path("disk.sock").display()
    )
}

struct Serving {
    program: Running,
    stderr: ChildStderr,
    socket: PathBuf,
}

impl Serving {
    fn client(&self) -> NbdDevice {
        NbdDevice::connect(&Place::Unix(self.socket.clone()), "").unwrap()
    }

    /// Ends it as a user does; its last words.
    fn end(self) -> String {
        self.ends_with(0)
    }

    /// The same, with this exit code.
    fn ends_with(mut self, code: i32) -> String {
        self.program.signal("-TERM");
        assert_eq!(self.program.0.wait().unwrap().code(), Some(code));
        assert!(!self.socket.exists(), "the socket stays behind");
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        said
    }
}

#[test]
fn other_programs_read_and_write_what_we_do() {
    if !have(&["nbdinfo", "nbdcopy", "qemu-img", "qemu-io"]) {
        return;
    }
    let sandbox = sandbox();
    create(&sandbox, "x.img", 40);
    let serving = served(&sandbox, "x.img", "--name disk --trim pass");
    let uri = uri(&sandbox);
    let size = sandbox.tool("nbdinfo", &format!("--size {uri}"));
    let size: u64 = size.trim().parse().unwrap();
    assert_eq!(size, 40 * MIB - 16 * MIB);
    let json = sandbox.tool("nbdinfo", &format!("--list --json {uri}"));
    let told: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(told["exports"][0]["export-name"], "disk");
    assert_eq!(told["exports"][0]["can_trim"], true);

    sandbox.write("plain", noise(size as usize, 3));
    sandbox.tool("nbdcopy", &format!("plain {uri}"));
    sandbox.tool("nbdcopy", &format!("--synchronous --no-extents {uri} copy"));
    assert!(sandbox.read("copy") == sandbox.read("plain"));
    sandbox.tool("qemu-img", &format!("compare -f raw -F raw plain {uri}"));
    let mut io = sandbox.command("qemu-io", &format!("-f raw {uri}"));
    for step in [
        "write -P 0x5a 1000k 3M",
        "write -f -P 0xa5 12345 777",
        "write -z 2M 64k",
        "write -z -u 5M 1M",
        "discard 8M 4M",
        "flush",
        "read -v 12345 16",
        "read -P 0x5a 1000k 1000k",
        "read -P 0xa5 12345 777",
        "read -P 0 2M 64k",
        "read -P 0 5M 1M",
        "read -P 0 8M 4M",
    ] {
        io.args(["-c", step]);
    }
    let output = io.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("failed"), "{said}");
    let map = sandbox.tool("nbdinfo", &format!("--map --json {uri}"));
    let map: Vec<serde_json::Value> = serde_json::from_str(&map).unwrap();
    let holes: u64 = map
        .iter()
        .filter(|extent| extent["type"] == 3)
        .map(|extent| extent["length"].as_u64().unwrap())
        .sum();
    // What was discarded, and not what was overwritten with zeros.
    assert_eq!(holes, 4 * MIB, "{map:?}");
    assert_eq!(serving.end(), "");

    // And the volume, opened again, says the same.
    let mut expected = sandbox.read("plain");
    let mut put = |at: u64, length: u64, byte| {
        expected[at as usize..(at + length) as usize].fill(byte);
    };
    put(1000 << 10, 3 * MIB, 0x5a);
    put(12345, 777, 0xa5);
    put(2 * MIB, 64 << 10, 0);
    let reading = "volume export x.img --passphrase-file line --output out";
    sandbox.ok(reading);
    let found = sandbox.read("out");
    for hole in [5..6, 8..12] {
        // A hole is noise to who does not know of holes.
        let range = (hole.start * MIB) as usize..(hole.end * MIB) as usize;
        expected[range.clone()].copy_from_slice(&found[range]);
    }
    assert!(found == expected);
}

/// Bytes of a file that take space.
fn allocated(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn a_discard_does_what_the_policy_says() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 32);
    let image = sandbox.path("x.img");
    let mut bytes = vec![0; MIB as usize];
    for policy in ["block", "zero", "pass"] {
        let serving = served(&sandbox, "x.img", &format!("--trim {policy}"));
        let client = serving.client();
        for at in 0..16 {
            client
                .write_at(at * MIB, &noise(MIB as usize, at + 1))
                .unwrap();
        }
        client.flush().unwrap();
        let (before, space) = (fs::read(&image).unwrap(), allocated(&image));
        let range = block::ByteRange::new(4 * MIB, 8 * MIB);
        let done = client.discard(range);
        client.flush().unwrap();
        let changed = fs::read(&image).unwrap() != before;
        let given_up = space - allocated(&image);
        drop(client);
        drop(serving.end());

        let serving = served(&sandbox, "x.img", &format!("--trim {policy} --read-only"));
        serving.client().read_at(5 * MIB, &mut bytes).unwrap();
        let zeros = bytes.iter().all(|&byte| byte == 0);
        drop(serving.end());
        match policy {
            "block" => {
                assert!(matches!(done, Err(BlockError::Unsupported { .. })));
                assert!(!changed && !zeros);
            }
            "zero" => assert!(changed && zeros && given_up == 0),
            _ => assert!(zeros && given_up == 8 * MIB, "{given_up}"),
        }
    }
}

#[test]
fn one_server_exports_several_volumes() {
    if !have(&["nbdinfo"]) {
        return;
    }
    let sandbox = sandbox();
    for (image, mib) in [("a.img", 18), ("b.img", 19)] {
        create(&sandbox, image, mib);
    }
    sandbox.write("lines", "a passphrase\na passphrase\n");
    let mut child = sandbox
        .cryptmark("volume serve a.img b.img --nbd disk.sock --passphrase-file -")
        .stdin(fs::File::open(sandbox.path("lines")).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("a.img, b.img are served: "), "{line}");
    let json = sandbox.tool("nbdinfo", &format!("--list --json {}", uri(&sandbox)));
    let told: serde_json::Value = serde_json::from_str(&json).unwrap();
    let exports: Vec<_> = told["exports"].as_array().unwrap().iter().collect();
    let of = |export: &serde_json::Value| {
        let name = export["export-name"].as_str().unwrap().to_owned();
        (name, export["export-size"].as_u64().unwrap() / MIB)
    };
    let found: Vec<_> = exports.into_iter().map(of).collect();
    assert_eq!(found, [("a.img".to_owned(), 2), ("b.img".to_owned(), 3)]);
    let place = Place::Unix(sandbox.path("disk.sock"));
    for (name, byte) in [("a.img", 1), ("b.img", 2)] {
        let device = NbdDevice::connect(&place, name).unwrap();
        device.write_at(0, &[byte; 512]).unwrap();
    }
    let mut bytes = [0; 512];
    let device = NbdDevice::connect(&place, "").unwrap();
    device.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 512]);
    drop(device);
    for image in ["a.img", "b.img"] {
        let again = format!("volume serve {image} --passphrase-file line --nbd other.sock");
        let output = sandbox.run(&again);
        assert_eq!(output.status.code(), Some(4));
    }
    sandbox.ok("volume umount b.img");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for arguments in [
        "a.img a.img",
        "a.img ./a.img",
        "a.img b.img --name x",
        "a.img b.img --header h",
        "a.img absent.img",
    ] {
        let arguments = format!("volume serve {arguments} --passphrase-file line --nbd disk.sock");
        let output = sandbox.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
}

/// Zeros that were acknowledged are zeros for every later reader, however the volume is opened then.
#[test]
fn zeros_stay_zeros_in_every_later_opening() {
    if !have(&["qemu-io"]) {
        return;
    }
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let serving = served(&sandbox, "x.img", "--trim pass");
    let mut io = sandbox.command("qemu-io", &format!("-f raw {}", uri(&sandbox)));
    io.args(["-c", "write -P 7 0 2M", "-c", "write -z -u 64k 64k"]);
    assert!(io.output().unwrap().status.success());
    serving.end();

    let export = "volume export x.img --passphrase-file line --output plain --no-progress";
    sandbox.ok(export);
    let plain = sandbox.read("plain");
    assert!(plain[65_536..][..65_536].iter().all(|byte| *byte == 0));
    let serving = served(&sandbox, "x.img", "");
    let mut zeros = vec![1; 65_536];
    serving.client().read_at(65_536, &mut zeros).unwrap();
    assert!(zeros.iter().all(|byte| *byte == 0));
    serving.end();
    // Zeros are ciphertext in the image, and no hole.
    let image = sandbox.read("x.img");
    let sectors = image[(16 << 20) + 65_536..][..65_536].chunks(512);
    let is_hole = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
    assert!(!sectors.into_iter().any(is_hole));
}

/// Every address of this machine alone serves its own user, and root.
#[test]
fn other_users_of_this_machine_are_sent_away() {
    if !have(&["qemu-io", "setpriv"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: other users: they need root");
    }
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let read = "qemu-io -f raw -c read\\ 0\\ 512";
    for address in ["127.0.0.1", "127.9.8.7", "[::1]", "[::ffff:127.0.0.1]"] {
        let mut serve = sandbox.cryptmark(&format!(
            "volume serve x.img --passphrase-file line --nbd {address}:0"
        ));
        serve.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = Running::start(&mut serve);
        let mut line = String::new();
        let mut told = BufReader::new(program.0.stdout.take().unwrap());
        told.read_line(&mut line).unwrap();
        let Some((_, place)) = line.trim().rsplit_once(" is served: ") else {
            println!("skipped: {address}: this machine has no such address");
            continue;
        };
        let reads = |user: &str| {
            let user = format!("setpriv --reuid={user} --regid={user} --clear-groups");
            let line = format!("{user} {read} nbd://{place}");
            let done = sandbox.command("sh", &["-c", &line]).output().unwrap();
            done.status.success()
        };
        assert!(reads("0"), "{address}");
        assert!(!reads("65534"), "{address}");
        program.signal("-TERM");
        program.0.wait().unwrap();
    }
}

/// `umount` ends a server, and removes the socket of one that was killed.
#[test]
fn a_server_is_ended_by_its_socket_or_its_volume() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let socket = sandbox.path("disk.sock");
    for (round, what) in ["disk.sock", "x.img"].iter().enumerate() {
        let mut serving = served(&sandbox, "x.img", "");
        serving.client().write_at(512, &[7; 512]).unwrap();
        sandbox.ok(&format!("volume umount {what}"));
        assert_eq!(serving.program.0.wait().unwrap().code(), Some(0));
        assert!(!socket.exists());

        let mut serving = served(&sandbox, "x.img", "");
        serving.program.0.kill().unwrap();
        serving.program.0.wait().unwrap();
        assert!(socket.exists());
        sandbox.ok(&format!("volume umount {what}"));
        assert!(!socket.exists(), "round {round}");
        let gone = sandbox.cryptmark(&format!("volume umount {what}"));
        assert_eq!({ gone }.output().unwrap().status.code(), Some(2));
    }
    let serving = served(&sandbox, "x.img", "");
    let mut bytes = [0; 512];
    serving.client().read_at(512, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 512]);
    drop(serving.end());
}

#[test]
fn what_cannot_be_served_is_refused_in_two_lines() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    sandbox.write("letter", "dear");
    let before = sandbox.read("x.img");
    for (code, arguments) in [
        (3, "x.img --passphrase-file wrong --nbd disk.sock"),
        (
            2,
            "x.img --passphrase-file line --nbd nowhere.invalid:99999",
        ),
        (
            2,
            "x.img --passphrase-file line --nbd disk.sock --trim maybe",
        ),
        (2, "x.img --passphrase-file line"),
        (2, "absent.img --passphrase-file line --nbd disk.sock"),
        (4, "x.img --passphrase-file line --nbd letter"),
        (
            1,
            "x.img --passphrase-file line --nbd no/such/folder/disk.sock",
        ),
        (3, "x.img --nbd disk.sock"),
    ] {
        let arguments = format!("volume serve {arguments}");
        let output = sandbox.run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}\n{said}");
        if !said.contains("Usage") {
            assert!(
                said.starts_with("error: ") && said.lines().count() >= 2,
                "{said}"
            );
        }
        assert!(!sandbox.path("disk.sock").exists());
    }
    let serving = served(&sandbox, "x.img", "");
    let again = "volume serve x.img --passphrase-file line --nbd disk.sock";
    let output = sandbox.run(again);
    assert_eq!(output.status.code(), Some(4));
    serving.client().read_at(0, &mut [0; 512]).unwrap();
    drop(serving.end());
    assert!(sandbox.read("x.img") == before);
}

#[test]
fn a_file_that_shrinks_fails_its_clients_and_not_the_server() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 32);
    let serving = served(&sandbox, "x.img", "");
    let client = serving.client();
    client.write_at(0, &[1; 4096]).unwrap();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(sandbox.path("x.img"))
        .unwrap();
    file.set_len(20 * MIB).unwrap();
    let mut bytes = [0; 4096];
    for _ in 0..3 {
        let error = client.read_at(10 * MIB, &mut bytes).unwrap_err();
        assert_eq!(error.errno(), 5);
    }
    client.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 4096]);
    // Not even its name is needed.
    fs::remove_file(sandbox.path("x.img")).unwrap();
    client.read_at(0, &mut bytes).unwrap();
    // It does not get longer again, with a hole where data were.
    for _ in 0..3 {
        let error = client.write_at(10 * MIB, &bytes).unwrap_err();
        assert_eq!(error.errno(), 5);
        assert_eq!(client.flush().unwrap_err().errno(), 5);
    }
    assert_eq!(file.metadata().unwrap().len(), 20 * MIB);
    drop(client);
    let said = serving.ends_with(1);
    assert_eq!(said.matches("read of 4096 bytes").count(), 1, "{said}");
    let lost = "error: written data may be lost, because a flush has failed: the file is now \
                shorter";
    assert!(said.contains(lost), "{said}");
}

/// In the background nobody reads what a server says, so that its record has to
/// keep it.
#[test]
fn who_unmounts_hears_what_was_not_stored() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 24);
    let whole = sandbox.read("x.img");
    let begin = "volume serve x.img --passphrase-file line --nbd disk.sock --daemon";
    let client = || NbdDevice::connect(&Place::Unix(sandbox.path("disk.sock")), "").unwrap();
    let said = |arguments: &str, code| {
        let output = sandbox.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}\n{said}");
        said
    };
    let missing = "failed, and its data may be missing: the file is now shorter than";
    for ended_by in ["umount", "signal", "signal and another server"] {
        sandbox.write("x.img", &whole);
        said(begin, 0);
        let first = client();
        let file = fs::OpenOptions::new()
            .write(true)
            .open(sandbox.path("x.img"))
            .unwrap();
        file.set_len(18 * MIB).unwrap();
        drop(file);
        // Nobody has seen it yet, and the system makes the file longer.
        first.write_at(3 * MIB, &[1; 4096]).unwrap();
        let second = client();
        for client in [&first, &second, &first] {
            assert_eq!(client.flush().unwrap_err().errno(), 5);
        }
        drop((first, second));
        if ended_by != "umount" {
            let pid = service_of(&sandbox, "x.img").unwrap()["pid"].to_string();
            sandbox.tool("kill", &pid);
            wait_until("it does not end", || {
                service_of(&sandbox, "x.img").unwrap()["alive"] != true
            });
            let status = sandbox.ok("volume status");
            assert!(status.contains(missing), "{status}");
        }
        if ended_by == "signal and another server" {
            sandbox.write("x.img", &whole);
            let told = said(begin, 0);
            assert!(
                told.starts_with("warning: ") && told.contains(missing),
                "{told}"
            );
            said("volume umount x.img", 0);
        } else {
            let told = said("volume umount x.img", 1);
            assert!(
                told.starts_with("error: ") && told.contains(missing),
                "{told}"
            );
            assert_eq!(told.lines().count(), 2, "{told}");
        }
        // And it is said once.
        said("volume umount x.img", 2);
    }
}

#[test]
fn in_the_background_it_is_known_and_locks_itself() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let arguments =
        "volume serve x.img --passphrase-file line --nbd disk.sock --daemon --lock-after 1";
    assert!(sandbox.ok(arguments).contains("is served"));
    let socket = sandbox.path("disk.sock");
    let service = service_of(&sandbox, "x.img").unwrap();
    assert_eq!(service["alive"], true);
    let client = NbdDevice::connect(&Place::Unix(socket.clone()), "").unwrap();
    client.write_at(0, &[3; 512]).unwrap();
    drop(client);
    wait_until("it does not end", || {
        !socket.exists() && service_of(&sandbox, "x.img").is_none()
    });
    let wrong = "volume serve x.img --passphrase-file wrong --nbd disk.sock --daemon";
    sandbox.cryptmark(wrong).ends(3);
    let serving = served(&sandbox, "x.img", "--read-only");
    let mut bytes = [0; 512];
    serving.client().read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [3; 512]);
    assert_eq!(serving.end(), "");
}

/// A client that is connected uses the volume, whatever it does.
#[test]
fn a_client_that_is_connected_is_not_cut_off() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let umount = || sandbox.run("volume umount x.img");
    let serving = served(&sandbox, "x.img", "");
    let client = serving.client();
    let refused = umount();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    let insists = format!("SIGTERM to process {} twice", serving.program.0.id());
    assert!(
        said.contains("open connections") && said.contains(&insists),
        "{said}"
    );
    client.write_at(0, &[4; 512]).unwrap();
    client.flush().unwrap();
    drop(client);
    assert_eq!(umount().status.code(), Some(0));
    drop(serving);

    let mut serving = served(&sandbox, "x.img", "--lock-after 1");
    let client = serving.client();
    std::thread::sleep(Duration::from_secs(3));
    client.write_at(0, &[5; 512]).unwrap();
    client.flush().unwrap();
    // The first signal waits for it, and the second does not.
    serving.program.signal("-TERM");
    std::thread::sleep(Duration::from_secs(1));
    client.write_at(512, &[5; 512]).unwrap();
    client.flush().unwrap();
    serving.program.signal("-TERM");
    assert_eq!(serving.program.0.wait().unwrap().code(), Some(1));
    drop(client);

    let mut serving = served(&sandbox, "x.img", "--lock-after 1");
    drop(serving.client());
    assert_eq!(serving.program.0.wait().unwrap().code(), Some(0));
}

/// How long a test may take, in seconds, and how often it does what it does.
fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn fio_verifies_what_it_writes() {
    if !have(&["fio"]) {
        return;
    }
    let seconds = given("VERIFY_SECONDS", 60);
    let sandbox = sandbox();
    create(&sandbox, "x.img", 80);
    let serving = served(&sandbox, "x.img", "--trim pass");
    let uri = uri(&sandbox);
    let patterns = [
        ("write", "1m", 4, "crc32c"),
        ("randwrite", "4k", 32, "sha256"),
        ("randrw", "512", 16, "crc32c"),
        (
            "randwrite",
            "3584",
            8,
            "pattern --verify_pattern=0xdeadbeef%o",
        ),
        // A discard and the write behind it may not be under way together.
        ("randtrimwrite", "64k", 8, "crc32c --serialize_overlap=1"),
        ("randrw", "256k", 2, "md5 --fsync=7"),
    ];
    let begun = Instant::now();
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        let (pattern, block, depth, verify) = patterns[rounds % patterns.len()];
        sandbox.tool(
            "fio",
            &format!(
                "--name=x --ioengine=nbd --uri={uri} --rw={pattern} --bs={block} \
                 --iodepth={depth} --verify={verify} --verify_fatal=1 --do_verify=1 \
                 --size=60m --io_size=24m --randseed={rounds}"
            ),
        );
        rounds += 1;
    }
    println!("fio verified {rounds} rounds in {seconds} s");
    assert!(rounds > 0);
    assert_eq!(serving.end(), "");
}

#[test]
fn what_was_flushed_survives_a_killed_server() {
    let kills = given("SERVER_KILLS", 10);
    let sandbox = sandbox();
    create(&sandbox, "x.img", 24);
    // The generation that each 4096-byte block holds at least.
    let mut flushed = vec![0_u64; 1024];
    let block_of = |index: u64, generation: u64| noise(4096, (index << 32 | generation) + 1);
    let serving = served(&sandbox, "x.img", "");
    let client = serving.client();
    for index in 0..1024 {
        client.write_at(index * 4096, &block_of(index, 0)).unwrap();
    }
    client.flush().unwrap();
    drop(client);
    drop(serving.end());
    for kill in 1..=kills {
        let mut serving = served(&sandbox, "x.img", "");
        let victim = serving.program.0.id().to_string();
        let wait = Duration::from_micros(2000 + kill * 7919 % 40_000);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            assert!(
                Command::new("kill")
                    .args(["-KILL", &victim])
                    .status()
                    .unwrap()
                    .success()
            );
        });
        // It may be killed before anyone has come.
        let client = NbdDevice::connect(&Place::Unix(serving.socket.clone()), "");
        let mut written = flushed.clone();
        let mut state = kill;
        // Until the server is gone.
        let outcome: Result<(), BlockError> = (|| {
            let Ok(client) = client else {
                return Err(BlockError::Interrupted);
            };
            loop {
                for _ in 0..8 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(11);
                    let index = (state >> 33) % 1024;
                    written[index as usize] = kill;
                    client.write_at(index * 4096, &block_of(index, kill))?;
                }
                client.flush()?;
                flushed.clone_from(&written);
            }
        })();
        assert!(outcome.is_err());
        killer.join().unwrap();
        serving.program.0.wait().unwrap();

        let serving = served(&sandbox, "x.img", "");
        let client = serving.client();
        let mut found = vec![0; 4096];
        for index in 0..1024_u64 {
            client.read_at(index * 4096, &mut found).unwrap();
            let old = flushed[index as usize];
            let new = written[index as usize];
            let is = |generation| found == block_of(index, generation);
            assert!(is(old) || is(new), "block {index} after {kill} kills");
            flushed[index as usize] = if is(new) { new } else { old };
        }
        drop(client);
        drop(serving.end());
    }
    println!("{kills} kills");
}
