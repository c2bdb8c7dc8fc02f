//! The rules of segments.

use super::{
    DATA, Json, Opens, Reads, Refused, Row, Spoil, check, json, row, second, see, spoilt, without,
};

const ROWS: &[Row<Spoil>] = &[
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
];

#[test]
fn headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
}
