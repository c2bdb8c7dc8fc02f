//! The rules of the text of the JSON, and of members that are not known.

use super::{
    Json, Opens, Refused, Row, Spoil, Text, check, json, nested, row, see, spoilt, without,
};

const ROWS: &[Row<Spoil>] = &[
    row("sound", Opens, Opens, true, Json(|_| ())),
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
];

#[test]
fn headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
}
