//! BitLocker volumes, with the programs that others read them with.

// What makes the volumes is shared with the crate's own tests.
extern crate volume as cryptmark_volume;

#[path = "../crates/volume/tests/bitlk/maker.rs"]
#[allow(dead_code)]
mod maker;

use maker::{PASSPHRASE, RECOVERY, Recipe, protection};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use testkit::{Sandbox, have, noise, two_lines};

const SIZE: u64 = 6 << 20;

/// A sandbox with every secret.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_cryptmark"))
        .with_file("passphrase", format!("{PASSPHRASE}\n"))
        .with_file("recovery", format!("{RECOVERY}\n"))
        .with_file("wrong", "wrong\n")
        .with_file("startup.BEK", maker::startup_key_file())
}

/// A volume `v.img` that holds an NTFS file system; what must be read from it.
fn volume(sandbox: &Sandbox, recipe: &Recipe) -> Vec<u8> {
    sandbox.write_zeros("plain", SIZE);
    let sector = recipe.sector_size.bytes().to_string();
    let format = [
        "--fast",
        "--force",
        "--quiet",
        "--sector-size",
        &sector,
        "plain",
    ];
    sandbox.tool("mkfs.ntfs", &format);
    // Windows writes the size where all is encrypted.
    let recipe = Recipe {
        up_to: match recipe.up_to {
            0 if recipe.version == 2 => SIZE,
            up_to => up_to,
        },
        ..recipe.clone()
    };
    let made = recipe.make(sandbox.read("plain"));
    sandbox.write("v.img", &made.image);
    made.plaintext
}

fn with(protectors: &[u16], recipe: Recipe) -> Recipe {
    Recipe {
        protectors: protectors.to_vec(),
        ..recipe
    }
}

#[test]
fn every_secret_opens_it_and_a_wrong_one_does_not() {
    if !have(&["mkfs.ntfs"]) {
        return;
    }
    let sandbox = sandbox();
    let plaintext = volume(&sandbox, &Recipe::default());
    for secret in [
        "--passphrase-file passphrase",
        "--passphrase-file recovery",
        "--key-file recovery",
        "--key-file startup.BEK",
    ] {
        let said = sandbox.volume(&format!("open v.img {secret}"));
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.contains("aes-xts-plain64") && said.contains("NTFS"),
            "{said}"
        );
        assert!(sandbox.volume(&format!("export v.img {secret} -o -")) == plaintext);
    }
    sandbox.refused(3, "v.img", "open v.img --passphrase-file wrong");
    sandbox.write("mistyped", RECOVERY.replace("278498", "278499"));
    let said = sandbox.refused(3, "v.img", "open v.img --passphrase-file mistyped");
    assert!(said.contains("group 2") && !said.contains("278"), "{said}");
    let info = sandbox.json("volume info v.img --json");
    assert_eq!(info["format"], "bitlk");
    let protectors = info["protectors"].as_object().unwrap().values();
    let kinds: Vec<_> = protectors
        .map(|said| said["type"].as_str().unwrap())
        .collect();
    for kind in ["TPM", "passphrase", "recovery password", "startup key"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

#[test]
fn a_clear_key_opens_it_without_a_question() {
    if !have(&["mkfs.ntfs"]) {
        return;
    }
    let sandbox = sandbox();
    let recipe = with(&[protection::TPM, protection::CLEAR], Recipe::default());
    let plaintext = volume(&sandbox, &recipe);
    let export = "export v.img -o -";
    let mut command = sandbox.volume_command(export);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout == plaintext);
}

/// The digest of what another program reads; nothing if that is not installed.
///
/// dislocker reads neither sectors of 4096 bytes, nor Vista's beginning, nor what is not encrypted.
/// dissect.fve reads all of these, and takes ten seconds for it.
fn other(sandbox: &Sandbox, recipe: &Recipe) -> Option<String> {
    let is_usual = recipe.sector_size.bytes() == 512 && recipe.version == 2;
    if is_usual && recipe.up_to == 0 {
        if !have(&["dislocker-file"]) {
            return None;
        }
        // dislocker overwrites no file.
        let _ = std::fs::remove_file(sandbox.path("decrypted"));
        let password = format!("-p{RECOVERY}");
        let arguments = ["-q", "-V", "v.img", &password, "--", "decrypted"];
        sandbox.tool("dislocker-file", &arguments);
        return Some(sha256(&sandbox.read("decrypted")));
    }
    dissect(sandbox, SIZE as usize)
}

/// The digest of the first `length` bytes that dissect.fve reads.
fn dissect(sandbox: &Sandbox, length: usize) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/tools/dissect/bin/python3");
    if !python.is_file() {
        println!("skipped: there is no dissect.fve");
        return None;
    }
    let length = length.to_string();
    let arguments = ["-c", DISSECT, "v.img", RECOVERY, &length];
    let digest = sandbox.tool(python.to_str().unwrap(), &arguments);
    Some(digest.trim().to_owned())
}

const DISSECT: &str = "\
import hashlib, sys
from dissect.fve.bde import BDE
volume = BDE(open(sys.argv[1], 'rb'))
volume.unlock_with_recovery_password(sys.argv[2])
print(hashlib.sha256(volume.open().read(int(sys.argv[3]))).hexdigest())
";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn other_programs_read_the_same() {
    if !have(&["mkfs.ntfs"]) {
        return;
    }
    let usual = || with(&[protection::RECOVERY], Recipe::default());
    let methods = (0x8000..=0x8005).map(|method| Recipe { method, ..usual() });
    let others = [
        Recipe {
            to_go: true,
            ..usual()
        },
        Recipe {
            sector_size: cipher::SectorSize::B4096,
            ..usual()
        },
        Recipe {
            version: 1,
            method: 0x8002,
            ..usual()
        },
        Recipe {
            state: [5, 4],
            up_to: 5 << 20,
            ..usual()
        },
    ];
    for recipe in methods.chain(others) {
        let sandbox = sandbox();
        let plaintext = volume(&sandbox, &recipe);
        let what = format!("method {:#x}, version {}", recipe.method, recipe.version);
        let read = other(&sandbox, &recipe);
        assert!(read.is_none_or(|read| read == sha256(&plaintext)), "{what}");
        if recipe.up_to > 0 {
            let import = "import v.img --yes --input plain --passphrase-file recovery";
            let said = sandbox.refused(4, "v.img", import);
            assert!(said.contains("has not finished"), "{said}");
            continue;
        }
        // What is written here, they read as well.
        let mut written = plaintext;
        written[4 << 20..].copy_from_slice(&noise(2 << 20, 7));
        written[64 << 10..1 << 20].copy_from_slice(&noise(960 << 10, 8));
        sandbox.write("written", &written);
        sandbox.volume("import v.img --yes --input written --passphrase-file recovery");
        let read = other(&sandbox, &recipe);
        assert!(
            read.is_none_or(|read| read == sha256(&written)),
            "{what}, written"
        );
    }
}

#[test]
fn dissect_reads_bitmaps_in_the_same_way() {
    if !have(&["mkfs.ntfs"]) {
        return;
    }
    // dissect.fve 4 never ends where the bits of a byte differ.
    let chunks = (0..SIZE as usize / maker::CHUNK).map(|nth| nth / 8 % 3 < 2);
    let recipe = Recipe {
        chunks: Some(chunks.collect()),
        ..with(&[protection::RECOVERY], Recipe::default())
    };
    let sandbox = sandbox();
    let plaintext = volume(&sandbox, &recipe);
    let export = "export v.img --passphrase-file recovery -o -";
    assert!(sandbox.volume(export) == plaintext);
    // Behind the moved sectors, which end inside a chunk, dissect.fve 4 takes chunks to begin there.
    let read = dissect(&sandbox, maker::MOVED);
    assert!(read.is_none_or(|read| read == sha256(&plaintext[..maker::MOVED])));
    let import = "import v.img --yes --input plain --passphrase-file recovery";
    let said = sandbox.refused(4, "v.img", import);
    assert!(said.contains("has not finished"), "{said}");
}

/// The plaintext as a file of a mount: it is read, written, and written into a place of BitLocker's.
#[test]
fn mounted_it_is_a_file() {
    if !have(&["mkfs.ntfs", "fusermount3"]) || !Path::new("/dev/fuse").exists() {
        println!("skipped: FUSE: a BitLocker volume as a file");
        return;
    }
    for method in [0x8001, 0x8005] {
        let sandbox = sandbox().with_directory("door");
        let recipe = Recipe {
            method,
            ..with(&[protection::CLEAR], Recipe::default())
        };
        let mut plaintext = volume(&sandbox, &recipe);
        sandbox.volume("mount v.img door --as file --daemon --yes");
        assert!(sandbox.read("door/volume") == plaintext);
        let file = File::options()
            .write(true)
            .open(sandbox.path("door/volume"));
        let file = file.unwrap();
        let change = noise(100_000, 5);
        for at in [1000, 4 << 20] {
            file.write_all_at(&change, at as u64).unwrap();
            plaintext[at..at + change.len()].copy_from_slice(&change);
        }
        file.sync_all().unwrap();
        drop(file);
        sandbox.volume("umount door");
        assert!(sandbox.volume("export v.img -o -") == plaintext);
        // A write over the metadata is refused, and umount says so once more.
        sandbox.volume("mount v.img door --as file --daemon --yes");
        let file = File::options()
            .write(true)
            .open(sandbox.path("door/volume"));
        let written = file
            .unwrap()
            .write_all_at(&[1; 4096], maker::COPIES[1] as u64);
        assert!(written.is_err());
        let umount = sandbox.volume_command("umount door").output().unwrap();
        let said = two_lines(&umount, 1, "umount");
        assert!(said.contains("byte 2097152 was refused"), "{said}");
        assert!(sandbox.volume("export v.img -o -") == plaintext);
    }
}

/// What libbde's program shows is a file in a mount.
#[test]
fn libbde_reads_the_same() {
    if !have(&["mkfs.ntfs", "bdemount", "fusermount3"]) || !Path::new("/dev/fuse").exists() {
        println!("skipped: FUSE: libbde mounts");
        return;
    }
    // libbde of 2019 does not take keys of 512 bits for XTS.
    for method in 0x8000..=0x8004 {
        let sandbox = sandbox().with_directory("door");
        let recipe = Recipe {
            method,
            ..with(&[protection::RECOVERY], Recipe::default())
        };
        let plaintext = volume(&sandbox, &recipe);
        let mut mount = sandbox.command("bdemount", &["-r", RECOVERY, "v.img", "door"]);
        let mounted = mount.output().unwrap();
        let said = String::from_utf8_lossy(&mounted.stderr).into_owned();
        assert!(mounted.status.success(), "{method:#x}: {said}");
        testkit::wait_until("libbde mounts nothing", || {
            sandbox.path("door/bde1").exists()
        });
        let read = sandbox.read("door/bde1");
        let mut end = Command::new("fusermount3");
        end.arg("-u").arg(sandbox.path("door"));
        assert!(end.status().unwrap().success());
        assert!(read == plaintext, "{method:#x}");
    }
}
