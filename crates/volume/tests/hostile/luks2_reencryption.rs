//! LUKS2: reencryptions that have begun, and say of themselves what cannot be.

use crate::kit::{Case, Expected, Luks2, begun, damaged, put, refused};
use cryptmark_volume::Format;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

fn says_too_little() -> Expected {
    refused(
        "this LUKS2 volume uses a reencryption that says too little of itself, which is not supported",
    )
}

/// Keyslot 0 opens the old segment, 1 the new one, and 2 is the journal.
const JOURNAL: &str = "2";

fn set(name: &str, pointer: &str, value: Value, expected: Expected) -> Case {
    begun(name, |v| v.set(pointer, value), expected)
}

/// A whole record of the journal, with `length` bytes that are zeros.
fn record(volume: &mut Luks2, sequence: u64, position: u64, length: u64) {
    let json = volume.json();
    let area = json["keyslots"][JOURNAL]["area"]["offset"]
        .as_str()
        .unwrap();
    let at: usize = area.parse().unwrap();
    let mut head = vec![0; 4096];
    put(&mut head, 0, b"CMREENC1");
    put(&mut head, 8, &sequence.to_be_bytes());
    put(&mut head, 16, &position.to_be_bytes());
    put(&mut head, 24, &length.to_be_bytes());
    let kept = vec![0; (length as usize).min(1 << 16)];
    put(&mut head, 32, &Sha256::digest(&kept));
    let seal = Sha256::digest(&head[..64]);
    put(&mut head, 64, &seal);
    put(&mut volume.bytes, at, &head);
    put(&mut volume.bytes, at + 4096, &kept);
}

fn with_record(name: &str, sequence: u64, position: u64, length: u64, expected: Expected) -> Case {
    begun(name, |v| record(v, sequence, position, length), expected)
}

pub fn cases() -> Vec<Case> {
    let whole = 64 << 10;
    vec![
        begun("reencryption_as_it_was_begun", |_| (), Expected::Opens),
        begun(
            "reencryption_without_a_journal",
            |v| {
                v.edit(|json| drop(json["keyslots"].as_object_mut().unwrap().remove(JOURNAL)));
            },
            says_too_little(),
        ),
        begun(
            "reencryption_whose_journal_has_no_area",
            |v| {
                v.set("/keyslots/2/area", json!({"type": "journal"}));
            },
            says_too_little(),
        ),
        begun(
            "reencryption_whose_journal_is_of_another_type",
            |v| {
                v.set("/keyslots/2/type", json!("reencrypt"));
            },
            says_too_little(),
        ),
        set(
            "reencryption_with_a_journal_of_4_kib",
            "/keyslots/2/area/size",
            json!("4096"),
            says_too_little(),
        ),
        set(
            "reencryption_with_a_journal_of_0_bytes",
            "/keyslots/2/area/size",
            json!("0"),
            says_too_little(),
        ),
        set(
            "reencryption_with_its_journal_behind_the_end",
            "/keyslots/2/area/offset",
            json!("1099511627776"),
            bad(
                "`keyslots.2.area.offset` is 1099511627776, and the area's 753664 bytes must lie within 1015808 bytes from 32768",
            ),
        ),
        set(
            "reencryption_with_its_journal_upon_a_keyslot",
            "/keyslots/2/area/offset",
            json!("32768"),
            bad("the areas of keyslots 0 and 2 overlap"),
        ),
        begun(
            "reencryption_without_a_new_segment",
            |v| {
                v.edit(|json| {
                    json["segments"].as_object_mut().unwrap().remove("1");
                    json["digests"]["1"]["segments"] = json!([]);
                });
            },
            says_too_little(),
        ),
        begun(
            "reencryption_without_a_new_digest",
            |v| {
                v.edit(|json| drop(json["digests"].as_object_mut().unwrap().remove("1")));
            },
            refused(
                "this LUKS2 volume uses a reencryption that says too little of itself, which is not supported",
            ),
        ),
        begun(
            "reencryption_without_the_old_digest",
            |v| {
                v.edit(|json| drop(json["digests"].as_object_mut().unwrap().remove("0")));
            },
            refused(
                "this LUKS2 volume uses a reencryption that says too little of itself, which is not supported",
            ),
        ),
        begun(
            "reencryption_with_a_cost_bomb_in_the_new_keyslot",
            |v| {
                v.set("/keyslots/1/kdf/iterations", json!(u32::MAX));
            },
            refused(
                "the key derivation asks for 4294967295 iterations, and the limit is 100000000",
            ),
        ),
        begun(
            "reencryption_with_a_cost_bomb_in_the_new_digest",
            |v| {
                v.set("/digests/1/iterations", json!(u32::MAX));
            },
            refused(
                "the key derivation asks for 4294967295 iterations, and the limit is 100000000",
            ),
        ),
        begun(
            "reencryption_that_also_requires_something_unknown",
            |v| {
                v.edit(|json| {
                    json["config"]["requirements"]["mandatory"] =
                        json!(["cryptmark-reencrypt-v1", "acme"])
                });
            },
            refused("this LUKS2 volume uses `acme`, which is not supported"),
        ),
        set(
            "reencryption_onto_the_header",
            "/segments/1/offset",
            json!("0"),
            refused("the data of this LUKS2 volume would lie upon its own header"),
        ),
        set(
            "reencryption_onto_key_material",
            "/segments/1/offset",
            json!("36864"),
            refused("the data of this LUKS2 volume would lie upon its own header"),
        ),
        set(
            "reencryption_behind_the_end",
            "/segments/1/offset",
            json!("1099511627776"),
            refused(
                "the data area (65536 bytes from 1099511627776) does not fit the device of 1114112 bytes",
            ),
        ),
        set(
            "reencryption_at_the_end_of_numbers",
            "/segments/1/offset",
            json!("18446744073709551104"),
            refused(
                "the data area (65536 bytes from 18446744073709551104) does not fit the device of 1114112 bytes",
            ),
        ),
        set(
            "reencryption_of_more_than_there_is",
            "/segments/1/size",
            json!("1099511627776"),
            refused(
                "the data area (1099511627776 bytes from 1048576) does not fit the device of 1114112 bytes",
            ),
        ),
        set(
            "reencryption_of_all_numbers",
            "/segments/1/size",
            json!("18446744073709551615"),
            refused(
                "the data area (18446744073709551615 bytes from 1048576) does not fit the device of 1114112 bytes",
            ),
        ),
        set(
            "reencryption_of_no_sectors",
            "/segments/1/size",
            json!("65535"),
            refused("the data area (65535 bytes from 1048576) is not made of 512-byte sectors"),
        ),
        set(
            "reencryption_of_more_than_the_old_segment",
            "/segments/0/size",
            json!("4096"),
            bad("`segments.1.size` is 65536, and segment 0 has 4096"),
        ),
        begun(
            "reencryption_to_integrity_tags",
            |v| {
                v.edit(|json| {
                    json["segments"]["1"]["integrity"] = json!({
                        "type": "aead", "journal_encryption": "none", "journal_integrity": "none",
                    })
                });
            },
            refused(
                "this LUKS2 volume uses integrity tags, which cannot be reencrypted, which is not supported",
            ),
        ),
        with_record(
            "journal_record_behind_the_data",
            1,
            1 << 40,
            4096,
            bad(
                "`journal.position` is 1099511627776, and its 4096 bytes must be sectors of the 65536 bytes of data",
            ),
        ),
        with_record(
            "journal_record_across_the_datas_end",
            1,
            whole - 512,
            4096,
            bad(
                "`journal.position` is 65024, and its 4096 bytes must be sectors of the 65536 bytes of data",
            ),
        ),
        with_record(
            "journal_record_that_wraps_into_the_header",
            1,
            0_u64.wrapping_sub(1 << 20),
            4096,
            bad(
                "`journal.position` is 18446744073708503040, and its 4096 bytes must be sectors of the 65536 bytes of data",
            ),
        ),
        with_record(
            "journal_record_of_no_sectors",
            1,
            0,
            100,
            bad(
                "`journal.position` is 0, and its 100 bytes must be sectors of the 65536 bytes of data",
            ),
        ),
        with_record(
            "journal_record_between_sectors",
            1,
            100,
            512,
            bad(
                "`journal.position` is 100, and its 512 bytes must be sectors of the 65536 bytes of data",
            ),
        ),
        with_record(
            "journal_record_longer_than_the_journal",
            1,
            0,
            u64::MAX,
            Expected::Opens,
        ),
        with_record(
            "journal_record_that_wraps_around",
            1,
            u64::MAX,
            4096,
            Expected::Opens,
        ),
        with_record(
            "journal_record_with_the_last_number",
            u64::MAX,
            0,
            512,
            Expected::Opens,
        ),
    ]
}
