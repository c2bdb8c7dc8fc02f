//! LUKS2: the JSON member by member.

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

const ROWS: &[Row<Spoil>] = &[
    row("sound", Opens, Opens, true, Json(|_| ())),
    // The text.
    row(
        "json-garbage-behind",
        Refused,
        Refused,
        false,
        Text(|text| (text + "\0x").into_bytes()),
    ),
    row(
        "json-space-before",
        Refused,
        Refused,
        false,
        Text(|text| (" ".to_owned() + &text).into_bytes()),
    ),
    row(
        "json-space-behind",
        Opens,
        Opens,
        true,
        Text(|text| (text + " ").into_bytes()),
    ),
    row(
        "json-twice",
        Refused,
        Refused,
        false,
        Text(|text| (text + "{}").into_bytes()),
    ),
    row(
        "json-member-twice",
        Opens,
        Refused,
        false,
        Text(|text| {
            text.replacen("{\"keyslots\"", "{\"x\":0,\"x\":1,\"keyslots\"", 1)
                .into_bytes()
        }),
    ),
    row(
        "json-31-levels",
        Opens,
        Opens,
        true,
        Text(|text| {
            text.replacen('{', &format!("{{\"x\":{},", nested(30)), 1)
                .into_bytes()
        }),
    ),
    row(
        "json-32-levels",
        Refused,
        Refused,
        false,
        Text(|text| {
            text.replacen('{', &format!("{{\"x\":{},", nested(32)), 1)
                .into_bytes()
        }),
    ),
    row(
        "json-integers-of-any-size",
        Opens,
        Opens,
        true,
        Text(|text| {
            text.replacen("\"tokens\":{}", "\"tokens\":{\"3\":{\"type\":\"acme\",\"keyslots\":[\"1\"],\"n\":[18446744073709551616,-0,1.50,1e3]}}", 1).into_bytes()
        }),
    ),
    row(
        "member-unknown",
        Opens,
        Opens,
        true,
        Json(|j| j["acme"] = json!({"a": [1, null]})),
    ),
    row(
        "section-missing",
        Refused,
        Refused,
        false,
        Json(|j| without(j, "tokens")),
    ),
    // Tokens.
    row(
        "token-of-unknown-type",
        Opens,
        Opens,
        true,
        Json(|j| j["tokens"] = json!({"5": {"type": "acme", "keyslots": ["0"]}})),
    ),
    row(
        "token-number-above-31",
        Reads,
        Opens,
        true,
        Json(|j| j["tokens"] = json!({"32": {"type": "acme", "keyslots": []}})),
    ),
    row(
        "token-named-by-a-word",
        Refused,
        Refused,
        false,
        Json(|j| j["tokens"] = json!({"x": {"type": "acme", "keyslots": []}})),
    ),
    row(
        "token-without-type",
        Refused,
        Refused,
        false,
        Json(|j| j["tokens"] = json!({"0": {"keyslots": []}})),
    ),
    row(
        "token-type-empty",
        Refused,
        Refused,
        false,
        Json(|j| j["tokens"] = json!({"0": {"type": "", "keyslots": []}})),
    ),
    row(
        "token-without-keyslots",
        Refused,
        Refused,
        false,
        Json(|j| j["tokens"] = json!({"0": {"type": "acme"}})),
    ),
    row(
        "token-keyslots-numbers",
        Refused,
        Refused,
        false,
        Json(|j| j["tokens"] = json!({"0": {"type": "acme", "keyslots": [0]}})),
    ),
    row(
        "token-of-no-keyslot",
        Refused,
        Opens,
        false,
        Json(|j| j["tokens"] = json!({"0": {"type": "acme", "keyslots": ["9"]}})),
    ),
    // Digests.
    row(
        "digest-of-no-keyslot",
        Refused,
        Refused,
        false,
        Json(|j| j["digests"]["0"]["keyslots"] = json!(["0", "1", "9"])),
    ),
    row(
        "digest-of-no-segment",
        Refused,
        Refused,
        false,
        Json(|j| j["digests"]["0"]["segments"] = json!(["0", "9"])),
    ),
    row(
        "digest-without-type",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["digests"]["0"], "type")),
    ),
    row(
        "digest-without-segments",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["digests"]["0"], "segments")),
    ),
    row(
        "digest-named-by-a-word",
        Refused,
        Refused,
        false,
        Json(|j| j["digests"]["x"] = json!({"type": "pbkdf2", "keyslots": [], "segments": []})),
    ),
    row(
        "digest-of-an-unbound-key",
        Opens,
        Opens,
        true,
        Json(|j| {
            unbound(j);
        }),
    ),
    row(
        "digest-of-unknown-type-beside",
        Opens,
        Opens,
        true,
        Json(|j| unbound(j)["type"] = json!("acme")),
    ),
    row(
        "digest-with-unknown-hash-beside",
        Opens,
        Opens,
        true,
        Json(|j| unbound(j)["hash"] = json!("acme")),
    ),
    row(
        "digest-of-the-data-of-unknown-type",
        Reads,
        Reads,
        true,
        Json(|j| j["digests"]["0"]["type"] = json!("acme")),
    ),
    // Keyslots.
    row(
        "keyslot-in-no-digest",
        Refused,
        Opens,
        false,
        Json(|j| j["digests"]["0"]["keyslots"] = json!(["0"])),
    ),
    row(
        "keyslot-in-two-digests",
        Refused,
        Opens,
        false,
        Json(|j| {
            unbound(j);
            j["digests"]["0"]["keyslots"] = json!(["0", "1"]);
        }),
    ),
    row(
        "keyslot-named-by-a-word",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["x"] = j["keyslots"]["1"].clone()),
    ),
    row(
        "keyslot-without-type",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"], "type")),
    ),
    row(
        "keyslot-type-empty",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["type"] = json!("")),
    ),
    row(
        "keyslot-without-key-size",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"], "key_size")),
    ),
    row(
        "keyslot-key-size-a-text",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["key_size"] = json!("32")),
    ),
    row(
        "keyslot-key-size-negative",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["key_size"] = json!(-1)),
    ),
    row(
        "keyslot-key-size-huge",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["key_size"] = json!(1 << 20)),
    ),
    row(
        "keyslot-member-unknown",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["acme"] = json!(7)),
    ),
    row(
        "keyslot-of-unknown-type",
        Opens,
        Opens,
        true,
        Json(
            |j| j["keyslots"]["4"] = json!({"type": "acme", "key_size": 7, "area": {"type": "acme", "offset": "917504", "size": "4096"}}),
        ),
    ),
    row(
        "keyslot-of-unknown-type-without-area",
        Refused,
        Opens,
        false,
        Json(|j| j["keyslots"]["4"] = json!({"type": "acme", "key_size": 7, "area": {}})),
    ),
    row(
        "keyslot-number-above-31",
        Opens,
        Opens,
        true,
        Json(
            |j| j["keyslots"]["32"] = json!({"type": "acme", "key_size": 7, "area": {"type": "acme", "offset": "917504", "size": "4096"}}),
        ),
    ),
    row(
        "area-without-type",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"]["area"], "type")),
    ),
    row(
        "area-of-unknown-type",
        Refused,
        Opens,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["type"] = json!("acme")),
    ),
    row(
        "area-offset-a-number",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["offset"] = json!(163_840)),
    ),
    row(
        "area-offset-negative",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["offset"] = json!("-163840")),
    ),
    row(
        "area-of-0-bytes",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["size"] = json!("0")),
    ),
    row(
        "area-in-the-header",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["offset"] = json!("16384")),
    ),
    row(
        "area-upon-another",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["offset"] = json!("36864")),
    ),
    row(
        "area-behind-the-keyslots",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["offset"] = json!("1044480")),
    ),
    row(
        "area-that-overflows",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["offset"] = json!("18446744073709551615")),
    ),
    row(
        "area-without-cipher",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"]["area"], "encryption")),
    ),
    row(
        "area-with-unknown-cipher",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["area"]["encryption"] = json!("foo-bar")),
    ),
    row(
        "area-with-cipher-null",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["area"]["encryption"] = json!("cipher_null-ecb")),
    ),
    row(
        "area-key-size-a-text",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["area"]["key_size"] = json!("32")),
    ),
    row(
        "kdf-missing",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"], "kdf")),
    ),
    row(
        "kdf-without-type",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"]["kdf"], "type")),
    ),
    row(
        "kdf-of-unknown-type",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["kdf"]["type"] = json!("scrypt")),
    ),
    row(
        "kdf-with-unknown-hash",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["kdf"]["hash"] = json!("crc32")),
    ),
    row(
        "kdf-without-salt",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"]["kdf"], "salt")),
    ),
    row(
        "kdf-salt-of-no-base64",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["kdf"]["salt"] = json!("*")),
    ),
    row(
        "kdf-iterations-a-text",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["kdf"]["iterations"] = json!("1000")),
    ),
    row(
        "kdf-iterations-too-many",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["kdf"]["iterations"] = json!(4_294_967_295_u32)),
    ),
    row(
        "kdf-member-unknown",
        Opens,
        Opens,
        false,
        Json(|j| j["keyslots"]["1"]["kdf"]["acme"] = json!(1)),
    ),
    row(
        "af-missing",
        Refused,
        Refused,
        false,
        Json(|j| without(&mut j["keyslots"]["1"], "af")),
    ),
    row(
        "af-of-unknown-type",
        Refused,
        Opens,
        false,
        Json(|j| j["keyslots"]["1"]["af"]["type"] = json!("luks3")),
    ),
    row(
        "af-with-unknown-hash",
        Opens,
        Opens,
        true,
        Json(|j| j["keyslots"]["1"]["af"]["hash"] = json!("crc32")),
    ),
    row(
        "af-stripes-a-text",
        Refused,
        Refused,
        false,
        Json(|j| j["keyslots"]["1"]["af"]["stripes"] = json!("4000")),
    ),
    row(
        "reencrypt-keyslot-without-requirement",
        Refused,
        Opens,
        false,
        Json(
            |j| j["keyslots"]["4"] = json!({"type": "reencrypt", "mode": "reencrypt", "direction": "forward", "key_size": 1, "area": {"type": "none", "offset": "917504", "size": "4096"}}),
        ),
    ),
    // Segments.
    row(
        "no-segments",
        Refused,
        Refused,
        false,
        Json(|j| {
            j["segments"] = json!({});
            j["digests"]["0"]["segments"] = json!([]);
        }),
    ),
    row(
        "segment-gap",
        Refused,
        Refused,
        false,
        Json(|j| {
            second(j);
            j["segments"]["2"] = j["segments"]["1"].take();
            without(&mut j["segments"], "1");
            j["digests"]["0"]["segments"] = json!(["0", "2"]);
        }),
    ),
    row(
        "segment-named-by-a-word",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["x"] = j["segments"]["0"].clone()),
    ),
    row(
        "segments-all-backup",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["flags"] = json!(["backup-final"])),
    ),
    row(
        "segment-behind-backup",
        Refused,
        Refused,
        false,
        Json(|j| second(j)["segments"]["0"]["flags"] = json!(["backup-previous"])),
    ),
    row(
        "segments-two",
        Opens,
        Reads,
        true,
        Json(|j| {
            second(j);
        }),
    ),
    row(
        "segments-overlap",
        Refused,
        Refused,
        false,
        Json(|j| second(j)["segments"]["1"]["offset"] = json!("1052672")),
    ),
    row(
        "segments-both-dynamic",
        Refused,
        Refused,
        false,
        Json(|j| second(j)["segments"]["0"]["size"] = json!("dynamic")),
    ),
    row(
        "segment-of-unknown-type",
        Opens,
        Reads,
        true,
        Json(|j| j["segments"]["0"]["type"] = json!("acme")),
    ),
    row(
        "segment-of-the-drive",
        Opens,
        Reads,
        false,
        Json(|j| {
            j["segments"]["0"]["type"] = json!("hw-opal-crypt");
            j["config"]["requirements"] = json!({"mandatory": ["opal"]});
        }),
    ),
    row(
        "segment-without-digest",
        Refused,
        Refused,
        false,
        Json(|j| j["digests"]["0"]["segments"] = json!([])),
    ),
    row(
        "segment-offset-of-no-sector",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["offset"] = json!("1048577")),
    ),
    row(
        "segment-offset-a-number",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["offset"] = json!(DATA)),
    ),
    row(
        "segment-offset-with-zeros-before",
        Opens,
        Opens,
        true,
        Json(|j| j["segments"]["0"]["offset"] = json!("01048576")),
    ),
    row(
        "segment-size-0",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["size"] = json!("0")),
    ),
    row(
        "segment-size-of-no-sector",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["size"] = json!("1000")),
    ),
    row(
        "segment-size-of-no-large-sector",
        Refused,
        Refused,
        false,
        Json(|j| {
            j["segments"]["0"]["size"] = json!("512");
            j["segments"]["0"]["sector_size"] = json!(4096);
        }),
    ),
    row(
        "segment-size-a-word",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["size"] = json!("all")),
    ),
    row(
        "segment-sector-size-513",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["sector_size"] = json!(513)),
    ),
    row(
        "segment-sector-size-8192",
        Opens,
        Reads,
        true,
        Json(|j| j["segments"]["0"]["sector_size"] = json!(8192)),
    ),
    row(
        "segment-iv-negative",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["iv_tweak"] = json!("-1")),
    ),
    row(
        "segment-cipher-empty",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["encryption"] = json!("")),
    ),
    row(
        "segment-cipher-unknown",
        Opens,
        Reads,
        true,
        Json(|j| j["segments"]["0"]["encryption"] = json!("foo-bar")),
    ),
    row(
        "segment-cipher-plain64-with-hash",
        Opens,
        Opens,
        true,
        Json(|j| j["segments"]["0"]["encryption"] = json!("aes-xts-plain64:sha256")),
    ),
    row(
        "segment-cipher-of-a-driver",
        Opens,
        Opens,
        true,
        Json(|j| j["segments"]["0"]["encryption"] = json!("capi:xts(ecb(aes-generic))-plain64")),
    ),
    row(
        "segment-integrity-cut",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["integrity"] = json!({"type": "hmac(sha256)"})),
    ),
    row(
        "segment-flags-a-text",
        Refused,
        Refused,
        false,
        Json(|j| j["segments"]["0"]["flags"] = json!("acme")),
    ),
    row(
        "segment-flag-unknown",
        Opens,
        Opens,
        true,
        Json(|j| j["segments"]["0"]["flags"] = json!(["acme"])),
    ),
    // Sizes, flags and requirements.
    row(
        "json-size-of-another-header",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["json_size"] = json!("28672")),
    ),
    row(
        "json-size-a-number",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["json_size"] = json!(12288)),
    ),
    row(
        "keyslots-size-odd",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["keyslots_size"] = json!("1015809")),
    ),
    row(
        "keyslots-size-129-mib",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["keyslots_size"] = json!("135266304")),
    ),
    row(
        "keyslots-size-into-the-data",
        Refused,
        Opens,
        false,
        Json(|j| j["config"]["keyslots_size"] = json!("1019904")),
    ),
    row(
        "flags-a-text",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["flags"] = json!("acme")),
    ),
    row(
        "flag-unknown",
        Opens,
        Opens,
        true,
        Json(|j| j["config"]["flags"] = json!(["acme"])),
    ),
    row(
        "requirements-a-list",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["requirements"] = json!(["acme"])),
    ),
    row(
        "requirements-numbers",
        Refused,
        Refused,
        false,
        Json(|j| j["config"]["requirements"] = json!({"mandatory": [1]})),
    ),
    row(
        "requirements-two-reencryptions",
        Refused,
        Refused,
        false,
        Json(|j| {
            j["config"]["requirements"] =
                json!({"mandatory": ["online-reencrypt", "online-reencrypt-v2"]})
        }),
    ),
    row(
        "requirement-of-a-reencryption-alone",
        Refused,
        Reads,
        false,
        Json(|j| j["config"]["requirements"] = json!({"mandatory": ["online-reencrypt-v2"]})),
    ),
    row(
        "requirement-unknown",
        Opens,
        Reads,
        false,
        Json(|j| j["config"]["requirements"] = json!({"mandatory": ["acme"]})),
    ),
    row(
        "requirement-optional",
        Opens,
        Opens,
        true,
        Json(|j| j["config"]["requirements"] = json!({"optional": ["acme"]})),
    ),
];

#[test]
fn luks2_headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
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
