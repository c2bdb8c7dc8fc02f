//! The rules of tokens.

use super::{Json, Opens, Reads, Refused, Row, Spoil, check, json, row, see, spoilt};

const ROWS: &[Row<Spoil>] = &[
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
];

#[test]
fn headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
}
