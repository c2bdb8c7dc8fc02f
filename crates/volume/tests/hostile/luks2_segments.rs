//! LUKS2: segments, and what a program must know to use them.

use crate::kit::{Case, Expected, Luks2, damaged, luks2, protected, refused};
use cryptmark_volume::Format;
use serde_json::{Value, json};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

/// One member of the segment by another.
fn set(name: &str, member: &str, value: Value, expected: Expected) -> Case {
    luks2(
        name,
        |v| v.set(&format!("/segments/0/{member}"), value),
        expected,
    )
}

/// A second segment: the first with these members.
fn second(name: &str, first: Value, second: Value, expected: Expected) -> Case {
    let add = |v: &mut Luks2| {
        v.edit(|json| {
            let mut new = json["segments"]["0"].clone();
            for (member, value) in second.as_object().unwrap() {
                new[member] = value.clone();
            }
            for (member, value) in first.as_object().unwrap() {
                json["segments"]["0"][member] = value.clone();
            }
            json["segments"]["1"] = new;
            json["digests"]["0"]["segments"] = json!(["0", "1"]);
        });
    };
    luks2(name, add, expected)
}

/// A requirement, and what the user sees of it.
fn required(name: &str, requirement: &str, seen: &str) -> Case {
    let require = |v: &mut Luks2| {
        v.edit(|json| json["config"]["requirements"] = json!({ "mandatory": [requirement] }));
    };
    let told = format!("this LUKS2 volume uses `{seen}`, which is not supported");
    luks2(name, require, refused(&told))
}

/// A volume of one segment that says that it is being reencrypted.
fn begun(requirement: &str, told: &str) -> Case {
    let require = |v: &mut Luks2| {
        v.edit(|json| json["config"]["requirements"] = json!({ "mandatory": [requirement] }));
    };
    luks2(
        &format!("requirement_{requirement}"),
        require,
        protected(told),
    )
}

pub fn cases() -> Vec<Case> {
    let mut cases = one();
    cases.extend(several());
    cases
}

fn one() -> Vec<Case> {
    vec![
        set(
            "segment_in_the_first_header",
            "offset",
            json!("0"),
            refused("the data of this LUKS2 volume would overlap its own header"),
        ),
        set(
            "segment_in_key_material",
            "offset",
            json!("32768"),
            refused("the data of this LUKS2 volume would overlap its own header"),
        ),
        set(
            "segment_offset_of_no_sector",
            "offset",
            json!("1048577"),
            bad("`segments.0.offset` is 1048577, and must be a multiple of 512"),
        ),
        set(
            "segment_at_the_end",
            "offset",
            json!("1114112"),
            refused(
                "the data area (512 bytes from byte 1114112) does not fit into the device of \
                 1114112 bytes",
            ),
        ),
        set(
            "segment_behind_the_end",
            "offset",
            json!("1099511627776"),
            refused(
                "the data area (512 bytes from byte 1099511627776) does not fit into the device of \
                 1114112 bytes",
            ),
        ),
        set(
            "segment_at_the_end_of_numbers",
            "offset",
            json!("18446744073709551104"),
            refused(
                "the data area (512 bytes from byte 18446744073709551104) does not fit into the \
                 device of 1114112 bytes",
            ),
        ),
        set(
            "segment_size_0",
            "size",
            json!("0"),
            bad("`segments.0.size` is 0, and must be more"),
        ),
        set(
            "segment_size_1",
            "size",
            json!("1"),
            bad("`segments.0.size` is 1, and must be a multiple of 512"),
        ),
        set(
            "segment_size_longer_than_the_device",
            "size",
            json!("1099511627776"),
            // It is cut off: what is there can be read.
            Expected::Opens,
        ),
        set(
            "segment_size_all_ones",
            "size",
            json!("18446744073709551615"),
            bad("`segments.0.size` is 18446744073709551615, and must be a multiple of 512"),
        ),
        set(
            "segment_size_that_wraps_around",
            "size",
            json!("18446744073708503040"),
            refused(
                "the data area (18446744073708503040 bytes from byte 1048576) does not fit into \
                 the device of 1114112 bytes",
            ),
        ),
        set(
            "segment_size_a_word",
            "size",
            json!("static"),
            bad("`segments.0.size` is not a 64-bit number in quotes"),
        ),
        set(
            "segment_size_a_number",
            "size",
            json!(65536),
            bad("`segments.0.size` is not a text"),
        ),
        set(
            "sector_size_0",
            "sector_size",
            json!(0),
            bad("`segments.0.sector_size` is 0, and must be a multiple of 512"),
        ),
        set(
            "sector_size_513",
            "sector_size",
            json!(513),
            bad("`segments.0.sector_size` is 513, and must be a multiple of 512"),
        ),
        set(
            "sector_size_8192",
            "sector_size",
            json!(8192),
            refused(
                "this LUKS2 volume uses `8192` as its `segments.0.sector_size`, which is not supported",
            ),
        ),
        set(
            "sector_size_2_to_the_32",
            "sector_size",
            json!(1_u64 << 32),
            bad("`segments.0.sector_size` is not a number of 0 to 4294967295"),
        ),
        set(
            "sector_size_in_quotes",
            "sector_size",
            json!("512"),
            bad("`segments.0.sector_size` is not a number of 0 to 4294967295"),
        ),
        set(
            "iv_tweak_2_to_the_64",
            "iv_tweak",
            json!("18446744073709551616"),
            bad("`segments.0.iv_tweak` is not a 64-bit number in quotes"),
        ),
        set(
            "iv_tweak_negative",
            "iv_tweak",
            json!("-1"),
            bad("`segments.0.iv_tweak` is not a 64-bit number in quotes"),
        ),
        set(
            "cipher_unknown",
            "encryption",
            json!("rot13-xts-plain64"),
            refused("unknown cipher `rot13`"),
        ),
        set(
            "cipher_empty",
            "encryption",
            json!(""),
            bad("`segments.0.encryption` is not text of at least one character"),
        ),
        set(
            "cipher_that_the_key_does_not_fit",
            "encryption",
            json!("des3_ede-cbc-plain64"),
            refused("des3_ede-cbc-plain64 cannot take a key of 256 bits"),
        ),
        set(
            "cipher_that_a_terminal_obeys",
            "encryption",
            json!("\u{1b}[2J-xts-plain64"),
            refused("unknown cipher `\\u{1b}[2J`"),
        ),
        set(
            "segment_type_unknown",
            "type",
            json!("striped"),
            refused(
                "this LUKS2 volume uses `striped` as its `segments.0.type`, which is not supported",
            ),
        ),
        luks2(
            "segment_linear",
            |v| {
                v.set(
                    "/segments/0",
                    json!({"type": "linear", "offset": "1048576", "size": "dynamic"}),
                );
            },
            refused("this LUKS2 volume uses data that is not encrypted, which is not supported"),
        ),
        luks2(
            "segment_with_integrity_and_a_key_for_nothing_else",
            |v| {
                v.edit(|json| json["segments"]["0"]["integrity"] = json!({
                "type": "hmac(sha256)", "journal_encryption": "none", "journal_integrity": "none",
            }));
            },
            refused("aes-xts-plain64 cannot take a key of 0 bits"),
        ),
        luks2(
            "segment_with_unknown_integrity",
            |v| {
                v.edit(|json| {
                    json["segments"]["0"]["integrity"] = json!({
                        "type": "x\u{7}", "journal_encryption": "none", "journal_integrity": "none",
                    })
                });
            },
            refused(
                "this LUKS2 volume uses `aes-xts-plain64` with integrity `x·`, which is not supported",
            ),
        ),
        luks2(
            "segment_with_half_an_integrity",
            |v| {
                v.edit(|json| {
                    json["segments"]["0"]["integrity"] = json!({ "type": "hmac(sha256)" })
                });
            },
            bad("`segments.0.integrity.journal_encryption` is missing"),
        ),
        luks2(
            "segment_flags_unknown",
            |v| {
                v.edit(|json| json["segments"]["0"]["flags"] = json!(["acme"]));
            },
            Expected::Opens,
        ),
        begun(
            "online-reencrypt",
            "the volume is being reencrypted in an old form that is not continued here",
        ),
        begun(
            "online-reencrypt-v2",
            "the header describes a reencryption that this program cannot continue",
        ),
        luks2(
            "requirement_opal",
            |v| v.edit(|json| json["config"]["requirements"] = json!({ "mandatory": ["opal"] })),
            refused(
                "this LUKS2 volume uses hardware encryption of the drive (OPAL), which is not supported",
            ),
        ),
        required(
            "requirement_that_a_terminal_obeys",
            "\u{1b}]0;x\u{7}",
            "·]0;x·",
        ),
        required(
            "requirement_of_9000_bytes",
            &"r".repeat(9000),
            &("r".repeat(40) + "…"),
        ),
    ]
}

fn several() -> Vec<Case> {
    let half = json!({"offset": "1081344"});
    vec![
        luks2(
            "no_segments",
            |v| {
                v.set("/segments", json!({}));
                v.set("/digests/0/segments", json!([]));
            },
            bad("`segments.0` is missing"),
        ),
        luks2(
            "segment_32",
            |v| v.replace("\"segments\":{\"0\"", "\"segments\":{\"32\""),
            bad("`segments.0` is missing"),
        ),
        luks2(
            "segments_none_but_a_backup",
            |v| {
                v.edit(|json| json["segments"]["0"]["flags"] = json!(["backup-previous"]));
            },
            bad("`segments.0` is missing"),
        ),
        second(
            "segments_both_dynamic",
            json!({}),
            half.clone(),
            bad("segments 0 and 1 overlap"),
        ),
        second(
            "segments_the_same",
            json!({"size": "4096"}),
            json!({"size": "4096"}),
            bad("segments 0 and 1 overlap"),
        ),
        second(
            "segments_that_overlap",
            json!({"size": "36864"}),
            half.clone(),
            bad("segments 0 and 1 overlap"),
        ),
        second(
            "segments_that_overlap_by_wrapping",
            json!({"size": "18446744073709551615"}),
            half.clone(),
            bad("`segments.0.size` is 18446744073709551615, and must be a multiple of 512"),
        ),
        second(
            "segments_two_side_by_side",
            json!({"size": "32768"}),
            half.clone(),
            refused("this LUKS2 volume uses several segments, which is not supported"),
        ),
        second(
            "segment_of_a_backup_beside",
            json!({}),
            json!({"flags": ["backup-final"]}),
            Expected::Opens,
        ),
    ]
}
