//! What encrypts in the lab kernel: the same bytes as the engine, and counted.

use crate::sandbox::{PROGRAM, lab, number, on_each, sandbox, succeed};
use block::LoopDevice;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use testkit::{Expect as _, Sandbox, noise};

/// Of the file-system paper; each with a key of 256 bits.
const CIPHERS: &[&str] = &["aes", "blowfish", "cast6", "serpent", "twofish"];

const DATA: usize = 512 << 10;
const KEY: usize = 32;

/// Tells what runs inside what to do: `write` or `read`, cipher, image.
const ORDER: &str = "LAB_CRYPTOLOOP";

/// Functions of the scripts: `crypt IMAGE CIPHER [OPTIONS]` makes /dev/mapper/c.
const CRYPT: &str = "
crypt() {
  device=$1; test -b $device || device=$(losetup --find --show $1) || exit 1
  echo 0 $(blockdev --getsz $device) crypt $2 $(od -An -v -tx1 key | tr -d ' \\n') 0 $device 0 $3 | dmsetup create c || exit 1
}
sum() { sha256sum $1 | cut -c1-64; }
";

/// What runs in the lab: a loop device of cryptoloop's is written or compared.
#[test]
#[ignore = "runs in the lab kernel, where the next test starts it"]
fn inside() {
    let order = std::env::var(ORDER).unwrap();
    let [what, cipher, image] = order.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{order}")
    };
    let (data, key) = (fs::read("data").unwrap(), fs::read("key").unwrap());
    let name = format!("{cipher}-cbc");
    let device = LoopDevice::with_cryptoloop(Path::new(image), true, &name, &key).unwrap();
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(device.path())
        .unwrap();
    match what {
        "write" => {
            file.write_all(&data).unwrap();
            file.sync_all().unwrap();
        }
        _ => {
            let mut found = Vec::new();
            file.read_to_end(&mut found).unwrap();
            assert!(found == data, "{cipher} {image}");
        }
    }
}

#[test]
fn cryptoloop_dm_crypt_and_the_engine_write_the_same() {
    let Some(sandbox) = sandbox() else { return };
    let data = noise(DATA, 5);
    sandbox.write("out/data", &data);
    sandbox.write("out/key", noise(KEY, 3));
    let agent = std::env::current_exe().unwrap();
    let agent = format!(
        "{} --ignored --exact encryption::inside --quiet",
        agent.display()
    );
    let mut script = format!("cd out\n{CRYPT}");
    for cipher in CIPHERS {
        for writer in ["cryptoloop", "dm-crypt", "engine"] {
            let image = sandbox.path(format!("out/{cipher}.{writer}"));
            fs::write(&image, vec![0; DATA]).unwrap();
            if writer == "engine" {
                engine(
                    "import",
                    &sandbox,
                    &image,
                    cipher,
                    &["--input", "out/data", "--yes"],
                );
            }
        }
        let spec = format!("{cipher}-cbc-plain");
        let _ = write!(
            script,
            "echo >/sys/kernel/cryptmark/cryptoloop
             {ORDER}='write {cipher} {cipher}.cryptoloop' {agent} >&2 || exit 1
             cp /sys/kernel/cryptmark/cryptoloop {cipher}.count
             crypt {cipher}.dm-crypt {spec}; dd if=data of=/dev/mapper/c bs=64k oflag=direct; dmsetup remove c
             for writer in cryptoloop dm-crypt engine; do
               crypt {cipher}.$writer {spec}; echo {cipher} $(sum /dev/mapper/c); dmsetup remove c
               {ORDER}=\"read {cipher} {cipher}.$writer\" {agent} >&2 || exit 1
             done\n"
        );
    }
    let said = succeed(&sandbox, &[], &script);
    let digest: String = Sha256::digest(&data)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let expected: String = CIPHERS
        .iter()
        .map(|cipher| format!("{cipher} {digest}\n").repeat(3))
        .collect();
    assert_eq!(said, expected);
    for cipher in CIPHERS {
        for writer in ["cryptoloop", "dm-crypt"] {
            let image = sandbox.path(format!("out/{cipher}.{writer}"));
            let plain = engine("export", &sandbox, &image, cipher, &["--output", "-"]);
            assert!(plain == data, "{cipher} by {writer}");
        }
        let count = sandbox.read_text(format!("out/{cipher}.count"));
        assert_eq!(number(&count, "bytes"), DATA as u64, "{cipher}");
        assert_eq!(number(&count, "transforms"), DATA as u64 / 512, "{cipher}");
        assert!(
            number(&count, "ticks") > 0 && number(&count, "unfinished") == 0,
            "{count}"
        );
    }
}

/// `volume COMMAND` on a plain volume of the tests' key.
fn engine(command: &str, sandbox: &Sandbox, image: &Path, cipher: &str, rest: &[&str]) -> Vec<u8> {
    let cipher = format!("{cipher}-cbc-plain");
    let mut engine = sandbox.volume_command(&[command, "--cipher", &cipher, "--type", "plain"]);
    engine.args(["--key-size", "256", "--key-file", "out/key"]);
    engine.arg(image).args(rest).succeeds().stdout
}

#[test]
fn timers_count_every_byte_that_dm_crypt_transforms() {
    on_each(check_timers);
}

fn check_timers(sandbox: &Sandbox, kernel: &[&str]) {
    sandbox.write("out/key", noise(KEY, 3));
    sandbox.write("disk", vec![0; 4 << 20]);
    let script = format!(
        "{CRYPT}cd out; timer=/sys/kernel/cryptmark/dm_crypt
         for options in '' '1 sector_size:4096' '2 sector_size:4096 iv_large_sectors' '3 same_cpu_crypt no_read_workqueue no_write_workqueue'; do
           crypt /dev/ubda serpent-cbc-plain64 \"$options\"; echo >$timer; cat $timer
           dd if=/dev/zero of=/dev/mapper/c bs=64k count=16 oflag=direct 2>/dev/null; cat $timer
           dd if=/dev/mapper/c of=/dev/null bs=128k count=4 iflag=direct 2>/dev/null; cat $timer; dmsetup remove c
         done"
    );
    let disk = ["--disk", "disk"];
    let said = succeed(sandbox, &[kernel, &disk].concat(), &script);
    let lines: Vec<&str> = said.lines().collect();
    let readings: Vec<String> = lines.chunks(4).map(|lines| lines.join("\n")).collect();
    assert_eq!(readings.len(), 12, "{said}");
    for (options, sector) in [(0, 512), (1, 4096), (2, 4096), (3, 512)] {
        let mut ticks = None;
        for (at, bytes) in [0, 1 << 20, 3 << 19].into_iter().enumerate() {
            let reading = &readings[3 * options + at];
            assert_eq!(number(reading, "bytes"), bytes, "{said}");
            assert_eq!(number(reading, "transforms"), bytes / sector, "{said}");
            assert_eq!(number(reading, "unfinished"), 0);
            assert!(ticks < Some(number(reading, "ticks")), "{said}");
            ticks = Some(number(reading, "ticks"));
        }
    }
}

#[test]
fn cpu_time_is_whole_and_has_no_ticks() {
    on_each(check_cpu_time);
}

fn check_cpu_time(sandbox: &Sandbox, kernel: &[&str]) {
    let script = "read_both() { cat /sys/kernel/cryptmark/clock /sys/kernel/cryptmark/cpu; }
        read_both; for each in $(seq 300); do $(:); done; sleep 0.3; read_both
        TIMEFORMAT='%3U %3S'; for each in $(seq 20); do time ls / >/dev/null; done 2>&1";
    let command = ["--", "bash", "-c", script];
    let arguments = [&["run"], kernel, &command].concat();
    let output = lab(sandbox, &arguments).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let (before, after, times) = (lines[..6].join("\n"), lines[6..12].join("\n"), &lines[12..]);
    let grown = |name| (number(&after, name) - number(&before, name)) as f64;
    let parts: f64 = ["user", "system", "irq", "idle"]
        .iter()
        .map(|part| grown(part))
        .sum();
    let whole = grown("nanoseconds");
    assert!(
        (parts / whole - 1.0).abs() < 0.02,
        "{parts} of {whole}\n{said}"
    );
    for part in ["user", "system", "idle", "ticks"] {
        assert!(grown(part) > 0.0, "{part} {said}");
    }
    // With ticks, all would be multiples of ten milliseconds.
    let milliseconds = times
        .iter()
        .flat_map(|line| line.split(' '))
        .map(|seconds| seconds.rsplit_once('.').unwrap().1.parse::<u32>().unwrap());
    let (count, fine) = milliseconds.fold((0, 0), |(count, fine), ms| {
        (count + 1, fine + u32::from(ms % 10 != 0))
    });
    assert!(count == 40 && fine > 10, "{said}");
}

#[test]
fn flash_file_systems_lie_on_dm_crypt() {
    let Some(sandbox) = sandbox() else { return };
    for tool in ["/sbin/mkfs.cramfs", "/sbin/dmsetup"] {
        if !Path::new(tool).exists() {
            println!("skipped: flash file systems in the lab kernel: there is no {tool}");
            return;
        }
    }
    sandbox.write("out/key", noise(KEY, 3));
    fs::create_dir_all(sandbox.path("tree/below")).unwrap();
    sandbox.write("tree/noise", noise(300_000, 7));
    sandbox.write("tree/below/text", "text\n".repeat(10_000));
    for disk in ["flash", "out/compressed"] {
        sandbox.write(disk, vec![0; 8 << 20]);
    }
    let script = format!(
        "{CRYPT}sums() {{ (cd $1 && find . -type f | sort | xargs sha256sum); }}
         top=$PWD; cd out; sums $top/tree >expected
         crypt /dev/ubda twofish-cbc-plain
         tr '\\0' '\\377' </dev/zero | dd of=/dev/mapper/c bs=64k iflag=fullblock count=128 2>/dev/null
         echo /dev/mapper/c,64KiB >/sys/module/block2mtd/parameters/block2mtd
         number=$(sed -n 's/^mtd\\([0-9]*\\):.*mapper.*/\\1/p' /proc/mtd)
         for each in 1 2; do
           mount -t jffs2 /dev/mtdblock$number /mnt || exit 1
           test $each = 2 || cp -r $top/tree/. /mnt
           sums /mnt | cmp - expected || exit 1; umount /mnt
         done; echo jffs2
         dmsetup rename c flash; mkfs.cramfs $top/tree image >/dev/null
         crypt /dev/ubdb cast6-cbc-plain; dd if=image of=/dev/mapper/c bs=64k conv=fsync 2>/dev/null
         mount -t cramfs /dev/mapper/c /mnt && sums /mnt | cmp - expected && echo cramfs"
    );
    let disks = [
        "--disk",
        "flash",
        "--disk",
        "out/compressed",
        "--memory",
        "256MiB",
    ];
    assert_eq!(succeed(&sandbox, &disks, &script), "jffs2\ncramfs\n");
    // Also as the engine reads it.
    let image = sandbox.read("out/image");
    let plain = engine(
        "export",
        &sandbox,
        &sandbox.path("out/compressed"),
        "cast6",
        &["--output", "-"],
    );
    assert!(plain[..image.len()] == image);
}

#[test]
fn the_engine_computes_the_same_inside_with_two_processes_at_once() {
    on_each(check_engine);
}

fn check_engine(sandbox: &Sandbox, kernel: &[&str]) {
    sandbox.write("out/key", noise(KEY, 3));
    let images: Vec<PathBuf> = CIPHERS
        .iter()
        .map(|cipher| sandbox.path(format!("{cipher}.img")))
        .collect();
    let mut script = String::from("cd out; set -e\n");
    let mut expected = String::new();
    for (seed, (cipher, image)) in (11..).zip(CIPHERS.iter().zip(&images)) {
        fs::write(image, noise(4 << 20, seed)).unwrap();
        let plain = engine("export", sandbox, image, cipher, &["--output", "-"]);
        let digest: String = Sha256::digest(&plain)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let _ = writeln!(expected, "{cipher} {digest}");
        let _ = writeln!(
            script,
            "(for each in 1 2 3; do {PROGRAM} volume export {} --type plain --key-size 256 --key-file key \
              --cipher {cipher}-cbc-plain --output - | sha256sum | cut -c1-64; done | uniq | sed 's/^/{cipher} /' >{cipher}.sum) &",
            image.display()
        );
    }
    script += "wait\n";
    for cipher in CIPHERS {
        let _ = writeln!(script, "cat {cipher}.sum");
    }
    let options = [kernel, &["--memory", "1GiB"]].concat();
    assert_eq!(succeed(sandbox, &options, &script), expected);
}
