//! LUKS2: the JSON member by member, read and written by cryptsetup's rules.

mod config;
mod digests;
mod keyslots;
mod segments;
mod text;
mod tokens;

use super::{
    DATA, GOOD_LUKS2, Opens, PAGE, Reads, Refused, Row, Seen, bytes_of, check, device_of, limits,
    row, secret,
};
use block::BlockDevice;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use volume::luks2::Header;

const HEADER: usize = 16 << 10;
const CHECKSUM: usize = 448;

/// What is done to the JSON, or to its text.
#[derive(Clone, Copy)]
enum Spoil {
    Json(fn(&mut Value)),
    Text(fn(String) -> Vec<u8>),
}

use Spoil::{Json, Text};

fn text_of(bytes: &[u8]) -> String {
    let area = &bytes[PAGE..HEADER];
    let end = area.iter().position(|&byte| byte == 0).unwrap();
    String::from_utf8(area[..end].to_vec()).unwrap()
}

fn spoilt(spoil: Spoil) -> Vec<u8> {
    let mut bytes = GOOD_LUKS2.clone();
    let text = text_of(&bytes);
    let area = match spoil {
        Json(edit) => {
            let mut json = serde_json::from_str(&text).unwrap();
            edit(&mut json);
            json.to_string().into_bytes()
        }
        Text(edit) => edit(text),
    };
    for copy in [0, HEADER] {
        let copy = &mut bytes[copy..copy + HEADER];
        copy[PAGE..].fill(0);
        copy[PAGE..PAGE + area.len()].copy_from_slice(&area);
        copy[CHECKSUM..CHECKSUM + 64].fill(0);
        let digest = Sha256::digest(&*copy);
        copy[CHECKSUM..CHECKSUM + 32].copy_from_slice(&digest);
    }
    bytes
}

/// Reads it, opens it, and gives it a label, which changes nothing else.
fn see(bytes: &[u8]) -> Seen {
    let device = device_of(bytes);
    let Ok(mut header) = Header::read(&device) else {
        return Seen {
            ours: Refused,
            writes: false,
            written: Vec::new(),
        };
    };
    let opened = header
        .unlock(&device, &secret(), None, &limits())
        .and_then(|unlocked| header.mapping(unlocked.key, &device));
    let (epoch, text) = (header.binary.seqid, text_of(bytes));
    let written = header.set_labels(&device, Some("another"), None);
    let after = bytes_of(&device);
    match written {
        Ok(()) => {
            let again = Header::read(&device).expect("what was written is read");
            assert_eq!(again.binary.seqid, epoch + 1);
            assert_eq!(
                text_of(&after),
                text.trim_end(),
                "what is not known is kept"
            );
        }
        Err(_) => assert_eq!(after, bytes, "nothing is written on an error"),
    }
    Seen {
        ours: if opened.is_ok() { Opens } else { Reads },
        writes: written.is_ok(),
        written: after,
    }
}

fn unbound(json: &mut Value) -> &mut Value {
    json["digests"]["0"]["keyslots"] = json!(["0"]);
    json["digests"]["1"] = json["digests"]["0"].clone();
    json["digests"]["1"]["segments"] = json!([]);
    json["digests"]["1"]["keyslots"] = json!(["1"]);
    &mut json["digests"]["1"]
}

fn without(object: &mut Value, member: &str) {
    object.as_object_mut().unwrap().remove(member).unwrap();
}

/// A second segment behind a first one of 32 KiB.
fn second(json: &mut Value) -> &mut Value {
    let mut new = json["segments"]["0"].clone();
    json["segments"]["0"]["size"] = json!("32768");
    new["offset"] = json!((DATA + (32 << 10)).to_string());
    json["segments"]["1"] = new;
    json["digests"]["0"]["segments"] = json!(["0", "1"]);
    json
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// C2 and its kin: a keyslot that goes takes its digest with it if nothing else
/// needs it, and leaves all others.
#[test]
fn keyslots_go_and_come_beside_those_of_other_keys() {
    let device = device_of(&spoilt(Json(|json| {
        unbound(json);
        json["tokens"] = json!({"0": {"type": "acme", "keyslots": ["0", "1"], "x": 1}});
    })));
    let mut header = Header::read(&device).unwrap();
    let unlocked = header.unlock(&device, &secret(), None, &limits()).unwrap();
    let options = volume::luks2::KeyslotOptions::new(super::kdf());
    let third = cipher::Key::from_slice(b"three");
    let slot = header
        .add_key(&device, &unlocked.key, &third, &options, None)
        .unwrap();
    assert_eq!(slot, 2);
    header.kill_key(&device, 0, false).unwrap();
    assert_eq!(header.json["digests"]["0"]["keyslots"], json!(["2"]));
    assert_eq!(header.json["digests"]["1"]["keyslots"], json!(["1"]));
    assert_eq!(
        header.json["tokens"]["0"],
        json!({"type": "acme", "keyslots": ["1"], "x": 1})
    );
    header.kill_key(&device, 1, false).unwrap();
    assert!(header.json["digests"].get("1").is_none());
    header.kill_key(&device, 2, true).unwrap();
    assert_eq!(header.json["digests"]["0"]["segments"], json!(["0"]));
    let mut start = vec![0; HEADER];
    device.read_at(0, &mut start).unwrap();
    assert!(Header::read(&device).unwrap().metadata.keyslots.is_empty());
}
