//! The rules of the section `config`: sizes, flags and requirements.

use super::{Json, Opens, Reads, Refused, Row, Spoil, check, json, row, see, spoilt};

const ROWS: &[Row<Spoil>] = &[
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
fn headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
}
