//! LUKS2: digests, which say whether a key is the right one.

use crate::kit::{Case, Expected, damaged, luks2, no_keyslot, refused};
use cryptmark_volume::Format;
use serde_json::{Value, json};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

pub fn cases() -> Vec<Case> {
    let one = |name: &str, member: &str, value: Value, expected| {
        luks2(
            name,
            |v| v.set(&format!("/digests/0/{member}"), value),
            expected,
        )
    };
    vec![
        one(
            "digest_of_a_keyslot_that_is_not_there",
            "keyslots",
            json!(["0", "7"]),
            bad("`digests.0.keyslots` is 7, and there is none with that number"),
        ),
        one(
            "digest_of_a_keyslot_with_a_huge_number",
            "keyslots",
            json!(["4294967296"]),
            bad("`digests.0.keyslots.0` is 4294967296, and is not a valid number"),
        ),
        one(
            "digest_of_a_segment_that_is_not_there",
            "segments",
            json!(["0", "1"]),
            bad("`digests.0.segments` is 1, and there is none with that number"),
        ),
        one(
            "digest_of_no_segment",
            "segments",
            json!([]),
            bad("`the digest of segments.0` is missing"),
        ),
        one(
            "digest_of_the_same_keyslot_1000_times",
            "keyslots",
            json!(vec!["0"; 1000]),
            Expected::Opens,
        ),
        one(
            "digest_type_unknown",
            "type",
            json!("hmac"),
            refused(
                "this LUKS2 volume uses `hmac` as its `digests.0.type`, which is not supported",
            ),
        ),
        one(
            "digest_hash_unknown",
            "hash",
            json!("crc32"),
            refused(
                "this LUKS2 volume uses `crc32` as its `digests.0.hash`, which is not supported",
            ),
        ),
        one(
            "digest_hash_another_of_that_length",
            "hash",
            json!("sha3-256"),
            no_keyslot(),
        ),
        one(
            "digest_empty",
            "digest",
            json!(""),
            bad("`digests.0.digest` is 0 bytes long, and sha256 gives 32"),
        ),
        one(
            "digest_of_one_byte",
            "digest",
            json!("AA=="),
            bad("`digests.0.digest` is 1 bytes long, and sha256 gives 32"),
        ),
        one(
            "digest_longer_than_its_hash",
            "digest",
            json!("A".repeat(44)),
            bad("`digests.0.digest` is 33 bytes long, and sha256 gives 32"),
        ),
        one(
            "digest_of_zeros",
            "digest",
            json!("A".repeat(43) + "="),
            no_keyslot(),
        ),
        one(
            "digest_no_base64",
            "digest",
            json!("*not base64*"),
            bad("`digests.0.digest` is not base64"),
        ),
        one(
            "digest_base64_without_its_end",
            "digest",
            json!("A".repeat(43)),
            bad("`digests.0.digest` is not base64"),
        ),
        one(
            "digest_salt_no_base64",
            "salt",
            json!("!"),
            bad("`digests.0.salt` is not base64"),
        ),
        one(
            "digest_salt_of_1025_bytes",
            "salt",
            json!("AAAA".repeat(341) + "AAA="),
            bad("`digests.0.salt` is 1025 bytes long, and must be at most 1024"),
        ),
        luks2(
            "digest_32",
            |v| v.replace("\"digests\":{\"0\"", "\"digests\":{\"32\""),
            Expected::Opens,
        ),
        luks2(
            "no_digests",
            |v| v.set("/digests", json!({})),
            bad("`the digest of segments.0` is missing"),
        ),
        luks2(
            "digest_of_an_unbound_key_beside",
            |v| {
                v.edit(|json| {
                    let mut digest = json["digests"]["0"].clone();
                    digest["segments"] = json!([]);
                    digest["keyslots"] = json!(["1"]);
                    json["digests"]["0"]["keyslots"] = json!(["0"]);
                    json["digests"]["1"] = digest;
                });
            },
            Expected::Opens,
        ),
    ]
}
