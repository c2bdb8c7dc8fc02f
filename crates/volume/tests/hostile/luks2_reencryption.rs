//! LUKS2: reencryptions that have begun, and say of themselves what cannot be.

use crate::kit::{Case, Expected, Luks2, begun, damaged, protected, refused};
use cryptmark_volume::Format;
use serde_json::{Value, json};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

/// The metadata under the digest were changed without the keys.
fn unbound() -> Expected {
    protected("the header describes a reencryption that is not bound to the volume's keys")
}

/// The digest is right, and the segments that it is not of make no sense.
fn impossible() -> Expected {
    protected("the header describes a reencryption that this program cannot continue")
}

/// Keyslot 0 opens the old segment, 1 the new one, and 2 tells of the reencryption. Segment 0 is
/// the data, 1 what it was, and 2 what it is to be.
fn set(name: &str, pointer: &str, value: Value, expected: Expected) -> Case {
    begun(name, |v| v.set(pointer, value), expected)
}

fn edit(name: &str, edit: impl FnOnce(&mut Value), expected: Expected) -> Case {
    begun(name, |v: &mut Luks2| v.edit(edit), expected)
}

fn remove(json: &mut Value, of: &str, name: &str) {
    json[of].as_object_mut().unwrap().remove(name);
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        begun("reencryption_as_it_was_begun", |_| (), Expected::Opens),
        edit(
            "reencryption_without_its_keyslot",
            |json| {
                remove(json, "keyslots", "2");
                remove(json, "digests", "2");
            },
            unbound(),
        ),
        edit(
            "reencryption_without_its_digest",
            |json| remove(json, "digests", "2"),
            unbound(),
        ),
        edit(
            "reencryption_with_the_digest_of_a_volume_key",
            |json| {
                remove(json, "digests", "2");
                json["digests"]["0"]["keyslots"] = json!(["0", "2"]);
            },
            unbound(),
        ),
        edit(
            "reencryption_in_its_own_copy_of_a_keyslot",
            |json| {
                json["keyslots"]["3"] = json["keyslots"]["2"].clone();
                json["keyslots"]["3"]["area"]["size"] = json!("4096");
                json["keyslots"]["2"]["area"]["offset"] = json!("1040384");
                json["keyslots"]["2"]["area"]["size"] = json!("4096");
            },
            unbound(),
        ),
        set(
            "reencryption_with_an_area_behind_the_end",
            "/keyslots/2/area/offset",
            json!("1099511627776"),
            bad(
                "`keyslots.2.area.offset` is 1099511627776, and the area's 753664 bytes must lie within 1015808 bytes from 32768",
            ),
        ),
        set(
            "reencryption_with_its_area_upon_a_keyslot",
            "/keyslots/2/area/offset",
            json!("32768"),
            bad("the areas of keyslots 0 and 2 overlap"),
        ),
        edit(
            "reencryption_without_a_new_segment",
            |json| {
                remove(json, "segments", "2");
                json["digests"]["1"]["segments"] = json!([]);
            },
            impossible(),
        ),
        edit(
            "reencryption_without_the_new_digest",
            |json| remove(json, "digests", "1"),
            refused(
                "the header of this LUKS2 volume is damaged: `the digest of segments.2` is missing",
            ),
        ),
        edit(
            "reencryption_without_the_old_digest",
            |json| remove(json, "digests", "0"),
            refused(
                "the header of this LUKS2 volume is damaged: `the digest of segments.0` is missing",
            ),
        ),
        set(
            "reencryption_with_a_cost_bomb_in_the_new_keyslot",
            "/keyslots/1/kdf/iterations",
            json!(u32::MAX),
            refused("the key derivation takes about 858 s on one core, and the limit is 188 s"),
        ),
        set(
            "reencryption_with_a_cost_bomb_in_the_new_digest",
            "/digests/1/iterations",
            json!(u32::MAX),
            refused("the key derivation takes about 858 s on one core, and the limit is 188 s"),
        ),
        set(
            "reencryption_with_a_cost_bomb_in_its_own_digest",
            "/digests/2/iterations",
            json!(u32::MAX),
            refused("the key derivation takes about 858 s on one core, and the limit is 188 s"),
        ),
        set(
            "reencryption_that_also_requires_something_unknown",
            "/config/requirements/mandatory",
            json!(["online-reencrypt-v2", "acme"]),
            refused("this LUKS2 volume uses `acme`, which is not supported"),
        ),
        set(
            "reencryption_of_a_version_that_is_unknown",
            "/config/requirements/mandatory",
            json!(["online-reencrypt-v4"]),
            refused("this LUKS2 volume uses `online-reencrypt-v4`, which is not supported"),
        ),
        set(
            "reencryption_of_another_version",
            "/config/requirements/mandatory",
            json!(["online-reencrypt-v3"]),
            unbound(),
        ),
        set(
            "reencryption_of_two_versions",
            "/config/requirements/mandatory",
            json!(["online-reencrypt-v2", "online-reencrypt-v3"]),
            refused(
                "the header of this LUKS2 volume is damaged: `config.requirements.mandatory` is 2, and only one reencryption is possible at a time",
            ),
        ),
        set(
            "reencryption_that_nothing_binds",
            "/config/requirements/mandatory",
            json!(["online-reencrypt"]),
            protected("the volume is being reencrypted in an old form that is not continued here"),
        ),
        set(
            "reencryption_that_is_only_to_be_left_alone",
            "/config/requirements/mandatory",
            json!(["cryptmark-reencrypt-alone"]),
            impossible(),
        ),
        set(
            "reencryption_onto_the_header",
            "/segments/2/offset",
            json!("0"),
            refused("the data of this LUKS2 volume would overlap its own header"),
        ),
        set(
            "reencryption_to_integrity_tags",
            "/segments/2/integrity",
            json!({ "type": "aead", "journal_encryption": "none", "journal_integrity": "none" }),
            refused(
                "this LUKS2 volume uses reencryption with integrity tags, which is not supported",
            ),
        ),
        set(
            "reencryption_of_other_data",
            "/segments/0/offset",
            json!("1052672"),
            impossible(),
        ),
        set(
            "reencryption_of_the_header",
            "/segments/0/offset",
            json!("4096"),
            refused("the data of this LUKS2 volume would overlap its own header"),
        ),
        set(
            "reencryption_of_another_cipher",
            "/segments/0/encryption",
            json!("aes-cbc-plain64"),
            impossible(),
        ),
        set(
            "reencryption_of_another_iv",
            "/segments/0/iv_tweak",
            json!("1"),
            impossible(),
        ),
        set(
            "reencryption_of_more_than_there_is",
            "/segments/0/size",
            json!("1099511627776"),
            refused(
                "the data area (1099511627776 bytes from byte 1048576) does not fit into the \
                 device of 1114112 bytes",
            ),
        ),
        set(
            "reencryption_of_all_numbers",
            "/segments/0/size",
            json!("18446744073709551615"),
            refused(
                "the header of this LUKS2 volume is damaged: `segments.0.size` is 18446744073709551615, and must be a multiple of 512",
            ),
        ),
        set(
            "reencryption_of_no_sectors",
            "/segments/0/size",
            json!("65535"),
            refused(
                "the header of this LUKS2 volume is damaged: `segments.0.size` is 65535, and must be a multiple of 512",
            ),
        ),
        edit(
            "reencryption_that_is_hot_between_sectors",
            |json| {
                let mut hot = json["segments"]["2"].clone();
                hot["flags"] = json!(["in-reencryption"]);
                hot["size"] = json!("100");
                json["segments"]["0"] = hot;
            },
            refused(
                "the header of this LUKS2 volume is damaged: `segments.0.size` is 100, and must be a multiple of 512",
            ),
        ),
        edit(
            "reencryption_that_shows_the_ciphertext_as_data",
            |json| {
                json["segments"]["0"] =
                    json!({ "type": "linear", "offset": "1048576", "size": "dynamic" });
                json["digests"]["0"]["segments"] = json!(["1"]);
            },
            impossible(),
        ),
    ];
    // Each member that the digest is of, and that no other rule is about.
    for (name, pointer, value) in [
        ("mode", "/keyslots/2/mode", json!("decrypt")),
        ("direction", "/keyslots/2/direction", json!("backward")),
        ("resilience", "/keyslots/2/area/type", json!("none")),
        ("size", "/keyslots/2/area/size", json!("4096")),
        ("old_offset", "/segments/1/offset", json!("1052672")),
        ("old_size", "/segments/1/size", json!("4096")),
        ("old_iv", "/segments/1/iv_tweak", json!("1")),
        (
            "old_cipher",
            "/segments/1/encryption",
            json!("aes-cbc-plain64"),
        ),
        ("new_offset", "/segments/2/offset", json!("1052672")),
        ("new_size", "/segments/2/size", json!("4096")),
        ("new_iv", "/segments/2/iv_tweak", json!("1")),
        (
            "new_cipher",
            "/segments/2/encryption",
            json!("cipher_null-ecb"),
        ),
        ("new_sectors", "/segments/2/sector_size", json!(4096)),
        ("new_type", "/segments/2/type", json!("linear")),
    ] {
        cases.push(set(
            &format!("reencryption_with_another_{name}"),
            pointer,
            value,
            unbound(),
        ));
    }
    cases
}
