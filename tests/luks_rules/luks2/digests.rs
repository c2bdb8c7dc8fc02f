//! The rules of digests.

use super::{
    Json, Opens, Reads, Refused, Row, Spoil, check, json, row, see, spoilt, unbound, without,
};

const ROWS: &[Row<Spoil>] = &[
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
];

#[test]
fn headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
}
