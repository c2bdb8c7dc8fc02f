//! Volumes whose sectors have tags: what does not fit its tag hides nothing.

use super::{nothing_wrong, refused, sandbox};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{CHEAP, Sandbox};

/// Sectors of the volume, all in one area, and the length of a tag.
const SECTORS: usize = 16 << 10;
const TAG: usize = 28;

/// Sections of the journal, and what they are made of: entries and data.
const SECTIONS: u64 = 3;
const ENTRY: usize = 48;
const ENTRIES: usize = 8 * (504 / ENTRY);

/// Makes the LUKS2 volume `v` one with tags, as cryptsetup does with `--integrity aead` and
/// `--integrity-no-wipe`; where its data begin.
fn seal(sandbox: &Sandbox) -> usize {
    let mut bytes = sandbox.read("v");
    let size = u64::from_be_bytes(bytes[8..16].try_into().unwrap()) as usize;
    let mut offset = 0;
    for at in [0, size] {
        let header = &mut bytes[at..][..size];
        let text = header[4096..].split(|&byte| byte == 0).next().unwrap();
        let mut metadata: Value = serde_json::from_slice(text).unwrap();
        let segment = &mut metadata["segments"]["0"];
        offset = segment["offset"].as_str().unwrap().parse().unwrap();
        segment["encryption"] = "aes-gcm-random".into();
        segment["sector_size"] = 512.into();
        segment["size"] = "dynamic".into();
        segment["integrity"] =
            json!({"type": "aead", "journal_encryption": "none", "journal_integrity": "none"});
        let text = serde_json::to_vec(&metadata).unwrap();
        header[4096..].fill(0);
        header[4096..][..text.len()].copy_from_slice(&text);
        header[448..512].fill(0);
        let checksum = Sha256::digest(&*header);
        header[448..480].copy_from_slice(&checksum);
    }
    // dm-integrity's superblock, and an empty journal.
    let mut out = vec![0; 4096];
    out[..8].copy_from_slice(b"integrt\0");
    (out[8], out[9], out[10]) = (4, 20, TAG as u8);
    out[12..16].copy_from_slice(&(SECTIONS as u32).to_le_bytes());
    out[16..24].copy_from_slice(&(SECTORS as u64).to_le_bytes());
    out[24] = 8;
    for section in 0..SECTIONS {
        for number in 0..8 + ENTRIES as u64 {
            let mut sector = [0; 512];
            if number < 8 {
                for entry in 0..ENTRIES / 8 {
                    sector[entry * ENTRY + 4..][..4].fill(0xff);
                }
            }
            let id = 0x3333_3333_3333_3333_u64 ^ (section << 32 | number);
            sector[504..].copy_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&sector);
        }
    }
    bytes[offset..][..out.len()].copy_from_slice(&out);
    sandbox.write("v", bytes);
    // Tags are for all that an area could have: 2^20 sectors.
    offset + out.len() + (TAG << 20).next_multiple_of(4096)
}

#[test]
fn damaged_sectors_hide_nothing() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create v --size 60M --key-size 256 -c aes-cbc-essiv:sha256 --yes --passphrase-file pass {CHEAP}"
    ));
    let data = seal(&sandbox);
    sandbox.write("letter", [b'l'; 4096]);
    // Whole sectors: the rest of one that was never written cannot be kept.
    let diary = b"my diary, day one\n".repeat(1 << 16);
    sandbox.write("diary", &diary[..1 << 20]);
    sandbox.write("blank", vec![0; SECTORS * 512]);
    let import = "import v --passphrase-file pass --no-progress -i";
    let again = format!("{import} letter");
    // Nothing was ever written.
    sandbox.volume(&format!("{import} diary"));
    let words = &["the volume in v holds readable data at byte 0", "--yes"];
    let mut wrong = refused(&sandbox, &again, b"", 4, words);

    // All has tags that fit, but for one sector.
    let damage = |sector: usize| {
        let mut bytes = sandbox.read("v");
        bytes[data + sector * 512] ^= 1;
        sandbox.write("v", bytes);
    };
    sandbox.volume(&format!("{import} blank --yes"));
    sandbox.volume(&format!("{import} blank"));
    damage(40);
    let words = &[
        "sectors that cannot be read (the first at byte 20480",
        "--yes",
    ];
    wrong.extend(refused(&sandbox, &again, b"", 4, words));
    sandbox.volume(&format!("{import} blank --yes"));
    sandbox.volume(&format!("{import} diary"));
    damage(0);
    let words = &["the volume in v holds readable data at byte 512"];
    wrong.extend(refused(&sandbox, &again, b"", 4, words));
    sandbox.volume(&format!("{again} --yes"));
    nothing_wrong(&wrong);
}
