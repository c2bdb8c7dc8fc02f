//! What serving costs, beside other servers: `cargo bench --bench serve -- [ROUNDS SECONDS nbd|files|mounting|client]`.
//!
//! Every server and its client (fio) share one core and a file in memory; they
//! take turns, and a figure is the median of its rounds with its range. Needs
//! root for FUSE and loop devices, fio, nbdkit, libnbd-bin, qemu-utils and qemu-system-common.
//! VeraCrypt's console program takes part where it is installed.

mod client;
mod veracrypt;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
const CORE: &str = "0";
const SIZE: &str = "600m";
/// Of nbdkit's memory, as long as the image that fills it.
const MEMORY: &str = "640M";

/// A server, and how its volume is made.
struct Server {
    name: &'static str,
    command: fn(&Path) -> Command,
}

fn ours(folder: &Path, image: &str) -> Command {
    let mut command = pinned(PROGRAM);
    command.args(["volume", "serve", image, "--nbd", "socket"]);
    match image {
        "plain" => command.args(["--type", "plain", "--cipher", "cipher_null-ecb"]),
        _ => &mut command,
    };
    command
        .args(["--passphrase-file", "line"])
        .current_dir(folder);
    command
}

fn qemu(folder: &Path, image: &str) -> Command {
    let mut command = pinned("qemu-nbd");
    let socket = folder.join("socket");
    command
        .args([
            "--persistent",
            "--shared=8",
            "--object",
            "secret,id=s,file=line",
        ])
        .arg(format!("--socket={}", socket.display()))
        .arg("--image-opts")
        .arg(match image {
            "plain" => "driver=raw,file.filename=plain".to_owned(),
            _ => format!("driver=luks,key-secret=s,file.filename={image}"),
        })
        .current_dir(folder);
    command
}

fn nbdkit(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = pinned("nbdkit");
    command
        .args(["--foreground", "--unix"])
        .arg(folder.join("socket"))
        .args(arguments)
        .current_dir(folder);
    command
}

const NBD: &[Server] = &[
    Server {
        name: "plain",
        command: |f| ours(f, "plain"),
    },
    Server {
        name: "nbdkit memory",
        command: |f| nbdkit(f, &["memory", MEMORY]),
    },
    Server {
        name: "aes, 4096",
        command: |f| ours(f, "aes.luks2"),
    },
    Server {
        name: "aes, 512",
        command: |f| ours(f, "aes"),
    },
    Server {
        name: "nbdkit luks",
        command: |f| nbdkit(f, &["--filter=luks", "file", "aes", "passphrase=+line"]),
    },
    Server {
        name: "qemu-nbd plain",
        command: |f| qemu(f, "plain"),
    },
    Server {
        name: "qemu-nbd aes",
        command: |f| qemu(f, "aes"),
    },
    Server {
        name: "serpent, 512",
        command: |f| ours(f, "serpent"),
    },
    Server {
        name: "qemu-nbd serpent",
        command: |f| qemu(f, "serpent"),
    },
    Server {
        name: "twofish, 512",
        command: |f| ours(f, "twofish"),
    },
    Server {
        name: "qemu-nbd twofish",
        command: |f| qemu(f, "twofish"),
    },
];

/// Pattern, block and depth.
const NBD_LOADS: &[[&str; 3]] = &[
    ["read", "4m", "4"],
    ["write", "4m", "4"],
    ["randread", "4k", "32"],
    ["randwrite", "4k", "32"],
];
const FILE_LOADS: &[[&str; 3]] = &[
    ["read", "1m", "1"],
    ["write", "1m", "1"],
    ["randread", "4k", "1"],
];

fn pinned(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command
        .args(["-c", CORE, program])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// A figure's rounds: MB/s, and microseconds of the median request.
type Figures = BTreeMap<(usize, &'static str, usize), (Vec<f64>, Vec<f64>)>;

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let rounds: usize = given
        .first()
        .map_or(5, |text| text.parse().expect("ROUNDS"));
    let seconds: f64 = given
        .get(1)
        .map_or(2.0, |text| text.parse().expect("SECONDS"));
    let folder = tempfile::tempdir_in("/dev/shm").expect("a file system in memory");
    let only = given.get(2).map_or("", String::as_str);
    let is_wanted = |group: &str| only.is_empty() || only == group;
    prepare(folder.path());
    if only != "client" {
        make_images(folder.path());
    }
    let mut nbd = Figures::new();
    let mut files = Figures::new();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (place, server) in NBD.iter().enumerate().filter(|_| is_wanted("nbd")) {
            let mut child = start(
                (server.command)(folder.path()),
                &folder.path().join("socket"),
            );
            let uri = uri(folder.path());
            if server.name == "nbdkit memory" {
                fill(folder.path());
            }
            for (load, words) in NBD_LOADS.iter().enumerate() {
                let target = ["--ioengine=nbd".to_owned(), format!("--uri={uri}")];
                add(
                    &mut nbd,
                    (place, server.name, load),
                    fio(&target, words, seconds),
                );
            }
            stop(&mut child);
        }
        for (place, (name, image)) in MOUNTS.iter().enumerate().filter(|_| is_wanted("files")) {
            if image.ends_with(veracrypt::IMAGE) && !veracrypt::is_installed() {
                continue;
            }
            let mounted = Mounted::new(folder.path(), image);
            for (load, words) in FILE_LOADS.iter().enumerate() {
                let target = direct(&mounted.file);
                add(
                    &mut files,
                    (2 * place, name, load),
                    fio(&target, words, seconds),
                );
            }
            if let Some(device) = mounted.attach() {
                for (load, words) in FILE_LOADS.iter().enumerate() {
                    let name = LOOPS[place];
                    add(
                        &mut files,
                        (2 * place + 1, name, load),
                        fio(&direct(&device), words, seconds),
                    );
                }
                if mounted.device.is_none() {
                    run(Command::new("losetup").arg("--detach").arg(device));
                }
            }
        }
    }
    print("NBD: server and client on one core", NBD_LOADS, &nbd);
    print(
        "A file by FUSE, and a loop device on it: one core, but for the loop's threads",
        FILE_LOADS,
        &files,
    );
    if is_wanted("client") {
        client::compare(folder.path(), rounds);
    }
    if is_wanted("mounting") {
        veracrypt::mounting(folder.path(), rounds);
    }
}

/// What is mounted, by the images' names; the last are other programs'.
const MOUNTS: &[(&str, &str)] = &[
    ("plain", "plain"),
    ("aes, 512", "aes"),
    ("serpent, 512", "serpent"),
    ("twofish, 512", "twofish"),
    ("aes-twofish-serpent", "cascade"),
    ("nbdfuse, nbdkit memory", "nbdfuse"),
    ("qemu-storage-daemon plain", "qemu"),
    ("veracrypt aes", "aes.hc"),
    ("veracrypt serpent", "serpent.hc"),
    ("veracrypt twofish", "twofish.hc"),
    ("veracrypt aes-twofish-serpent", "cascade.hc"),
];
const LOOPS: &[&str] = &[
    "loop on plain",
    "loop on aes, 512",
    "loop on serpent, 512",
    "loop on twofish, 512",
    "loop on aes-twofish-serpent",
    "loop on nbdfuse",
    "loop on qemu-storage-daemon",
    "its loop on veracrypt aes",
    "its loop on serpent",
    "its loop on twofish",
    "its loop on the cascade",
];

fn prepare(folder: &Path) {
    std::fs::write(folder.join("line"), "a passphrase").expect("room in memory");
    let noise = std::fs::File::create(folder.join("plain")).expect("room in memory");
    let mut from = std::io::Read::take(
        std::fs::File::open("/dev/urandom").expect("noise"),
        640 << 20,
    );
    std::io::copy(&mut from, &mut &noise).expect("room in memory");
}

/// Volumes of all kinds.
fn make_images(folder: &Path) {
    let cheap =
        "--passphrase-file line --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --yes --no-progress";
    for (image, how) in [
        (
            "aes",
            format!("--type luks1 --cipher aes-xts-plain64 --key-size 512 {cheap}"),
        ),
        (
            "serpent",
            format!("--type luks1 --cipher serpent-xts-plain64 --key-size 512 {cheap}"),
        ),
        (
            "twofish",
            format!("--type luks1 --cipher twofish-xts-plain64 --key-size 512 {cheap}"),
        ),
        (
            "aes.luks2",
            format!("--cipher aes-xts-plain64 --key-size 512 --sector-size 4096 {cheap}"),
        ),
        ("aes.hc", veracrypt::creation("aes")),
        ("serpent.hc", veracrypt::creation("serpent")),
        ("twofish.hc", veracrypt::creation("twofish")),
        ("cascade.hc", veracrypt::creation("aes-twofish-serpent")),
    ] {
        std::fs::copy(folder.join("plain"), folder.join(image)).expect("room in memory");
        std::fs::write(folder.join("long"), veracrypt::PASSPHRASE).expect("room in memory");
        run(Command::new(PROGRAM)
            .args(["volume", "create", image])
            .args(how.split_whitespace())
            .current_dir(folder));
    }
    std::fs::create_dir(folder.join("mounted")).expect("room in memory");
}

fn start(mut command: Command, socket: &Path) -> Child {
    // nbdkit leaves its own behind.
    let _ = std::fs::remove_file(socket);
    let child = command.spawn().expect("the server is installed");
    wait_for(|| std::os::unix::net::UnixStream::connect(socket).is_ok());
    child
}

fn uri(folder: &Path) -> String {
    format!("nbd+unix:///?socket={}", folder.join("socket").display())
}

/// Gives nbdkit's memory the bytes that the others read: of what was never written
/// it reads nothing, it answers zeros.
fn fill(folder: &Path) {
    let mut copy = Command::new("nbdcopy");
    run(copy.arg("plain").arg(uri(folder)).current_dir(folder));
}

fn wait_for(mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the server does not begin"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn stop(child: &mut Child) {
    run(Command::new("kill").arg(child.id().to_string()));
    child.wait().expect("it is ours");
}

fn run(command: &mut Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the program is installed");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
}

/// A file by FUSE.
struct Mounted {
    file: PathBuf,
    directory: PathBuf,
    servers: Vec<Child>,
    image: String,
    /// A loop device of the server's own.
    device: Option<PathBuf>,
}

impl Mounted {
    fn new(folder: &Path, image: &str) -> Self {
        let directory = folder.join("mounted");
        let mut file = directory.join("volume");
        let mut servers = Vec::new();
        let mut device = None;
        match image {
            _ if image.ends_with(veracrypt::IMAGE) => {
                (file, device) = veracrypt::mount(folder, image);
            }
            "nbdfuse" => {
                let kit = nbdkit(folder, &["memory", MEMORY]);
                servers.push(start(kit, &folder.join("socket")));
                fill(folder);
                file = directory.join("nbd");
                servers.push(
                    pinned("nbdfuse")
                        .arg(&directory)
                        .arg(uri(folder))
                        .spawn()
                        .expect("libnbd-bin"),
                );
            }
            "qemu" => {
                file = folder.join("exported");
                std::fs::write(&file, "").expect("room in memory");
                let mut daemon = pinned("qemu-storage-daemon");
                daemon
                    .args(["--blockdev", "file,node-name=disk,filename=plain", "--export"])
                    .arg(format!(
                        "fuse,id=e,node-name=disk,mountpoint={},writable=on,growable=off,allow-other=off",
                        file.display()
                    ))
                    .current_dir(folder);
                servers.push(daemon.spawn().expect("qemu-system-common"));
            }
            image => {
                let line = if image == "cascade" { "long" } else { "line" };
                let mut mount = pinned(PROGRAM);
                let volume = if image == "cascade" {
                    "cascade.hc"
                } else {
                    image
                };
                mount.args([
                    "volume",
                    "mount",
                    volume,
                    "mounted",
                    "--as",
                    "file",
                    "--passphrase-file",
                    line,
                ]);
                match image {
                    "plain" => mount.args(["--type", "plain", "--cipher", "cipher_null-ecb"]),
                    "cascade" => mount.args(veracrypt::OPENED),
                    _ => &mut mount,
                };
                servers.push(mount.current_dir(folder).spawn().expect("this program"));
            }
        }
        wait_for(|| std::fs::metadata(&file).is_ok_and(|found| found.len() > 1 << 20));
        Self {
            file,
            directory,
            servers,
            image: image.to_owned(),
            device,
        }
    }

    /// A loop device that goes around the page cache, where it can.
    fn attach(&self) -> Option<PathBuf> {
        if self.device.is_some() {
            return self.device.clone();
        }
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(&self.file)
            .output()
            .ok()?;
        let name = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| name.trim().into())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.image.ends_with(veracrypt::IMAGE) {
            veracrypt::dismount(
                &self.image,
                self.directory.parent().expect("it is in a folder"),
            );
        }
        if self.image == "nbdfuse" {
            let _ = Command::new("umount").arg(&self.directory).status();
        }
        for server in self.servers.iter_mut().rev() {
            let _ = Command::new("kill").arg(server.id().to_string()).status();
            let _ = server.wait();
        }
    }
}

fn direct(file: &Path) -> [String; 2] {
    [
        "--ioengine=psync".into(),
        format!("--filename={} --direct=1", file.display()),
    ]
}

/// MB/s, and microseconds of the median request.
fn fio(target: &[String], [pattern, block, depth]: &[&str; 3], seconds: f64) -> (f64, f64) {
    let arguments = format!(
        "{} --name=x --rw={pattern} --bs={block} --iodepth={depth} --size={SIZE} --runtime={seconds} --time_based \
         --output-format=json --allow_file_create=0",
        target.join(" ")
    );
    let output = pinned("fio")
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .output()
        .expect("fio is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..])
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let way = if pattern.ends_with("read") {
        "read"
    } else {
        "write"
    };
    let job = &json["jobs"][0][way];
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    (
        number(&job["bw_bytes"]) / 1e6,
        number(&job["clat_ns"]["percentile"]["50.000000"]) / 1e3,
    )
}

fn add(figures: &mut Figures, key: (usize, &'static str, usize), (rate, time): (f64, f64)) {
    let (rates, times) = figures.entry(key).or_default();
    rates.push(rate);
    times.push(time);
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}

fn print(title: &str, loads: &[[&str; 3]], figures: &Figures) {
    if figures.is_empty() {
        return;
    }
    println!("\n{title}; MB/s, median (least–most); p50 in µs at depth 1");
    let heads: Vec<String> = loads
        .iter()
        .map(|[pattern, block, depth]| format!("{pattern} {block} {depth}"))
        .collect();
    println!(
        "{:<28}{}",
        "",
        heads
            .iter()
            .map(|head| format!("{head:>24}"))
            .collect::<String>()
    );
    let mut line = String::new();
    for ((_, name, load), (rates, times)) in figures {
        if *load == 0 && !line.is_empty() {
            println!("{line}");
        }
        if *load == 0 {
            line = format!("{name:<28}");
        }
        let (middle, least, most) = median(rates.clone());
        let time = match loads[*load] {
            [_, "4k", "1"] => format!(" {:.1} µs", median(times.clone()).0),
            _ => String::new(),
        };
        line += &format!(
            "{:>24}",
            format!("{middle:.0} ({least:.0}–{most:.0}){time}")
        );
    }
    println!("{line}");
}
