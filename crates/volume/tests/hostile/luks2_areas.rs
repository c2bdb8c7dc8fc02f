//! LUKS2: keyslots and their areas.

use crate::kit::{
    Attempt, Case, Expected, Luks2, damaged, luks2, luks2_for, no_keyslot, refused, refused_secret,
    untried, without_keyslots,
};
use cryptmark_volume::Format;
use serde_json::{Value, json};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

/// Several values of the JSON by others.
fn set(name: &str, values: &[(&str, Value)], expected: Expected) -> Case {
    let spoil = |v: &mut Luks2| {
        for (pointer, value) in values {
            v.set(pointer, value.clone());
        }
    };
    luks2(name, spoil, expected)
}

pub fn cases() -> Vec<Case> {
    let mut cases = areas();
    cases.extend(keyslots());
    cases
}

fn areas() -> Vec<Case> {
    let offset = |name: &str, slot: u32, offset: &str| {
        let pointer = format!("/keyslots/{slot}/area/offset");
        let told = format!(
            "`keyslots.{slot}.area.offset` is {offset}, and the area's 131072 bytes must lie within 1015808 bytes from 32768"
        );
        set(name, &[(&pointer, json!(offset))], bad(&told))
    };
    let size = |name: &str, size: &str, told: &str| {
        set(name, &[("/keyslots/1/area/size", json!(size))], bad(told))
    };
    vec![
        offset("area_at_the_start", 0, "0"),
        offset("area_in_the_second_copy", 0, "16384"),
        offset("area_in_the_last_byte_of_the_second_copy", 0, "32767"),
        offset("area_in_the_data", 1, "1048576"),
        offset("area_across_the_datas_start", 1, "1044480"),
        offset("area_behind_the_end", 1, "1099511627776"),
        offset("area_at_the_end_of_numbers", 1, "18446744073709551615"),
        set(
            "area_of_two_slots_the_same",
            &[("/keyslots/1/area/offset", json!("32768"))],
            bad("the areas of keyslots 0 and 1 overlap"),
        ),
        set(
            "area_in_that_of_another_slot",
            &[("/keyslots/1/area/offset", json!("36864"))],
            bad("the areas of keyslots 0 and 1 overlap"),
        ),
        size(
            "area_into_the_data",
            "1015808",
            "`keyslots.1.area.offset` is 163840, and the area's 1015808 bytes must lie within 1015808 bytes from 32768",
        ),
        size(
            "area_of_0_bytes",
            "0",
            "`keyslots.1.area.size` is 0, and must be more",
        ),
        set(
            "area_smaller_than_its_material",
            &[("/keyslots/1/area/size", json!("127488"))],
            Expected::Opens,
        ),
        size(
            "area_at_the_end_of_numbers_by_size",
            "18446744073709551615",
            "`keyslots.1.area.offset` is 163840, and the area's 18446744073709551615 bytes must lie within 1015808 bytes from 32768",
        ),
        set(
            "keyslots_size_0",
            &[("/config/keyslots_size", json!("0"))],
            bad(
                "`keyslots.0.area.offset` is 32768, and the area's 131072 bytes must lie within 0 bytes from 32768",
            ),
        ),
        set(
            "keyslots_size_odd",
            &[("/config/keyslots_size", json!("1015809"))],
            bad("`config.keyslots_size` is 1015809, and must be a multiple of 4096 up to 128 MiB"),
        ),
        set(
            "keyslots_size_129_mib",
            &[("/config/keyslots_size", json!("135266304"))],
            bad(
                "`config.keyslots_size` is 135266304, and must be a multiple of 4096 up to 128 MiB",
            ),
        ),
        set(
            "keyslots_size_all_ones",
            &[("/config/keyslots_size", json!("18446744073709551615"))],
            bad(
                "`config.keyslots_size` is 18446744073709551615, and must be a multiple of 4096 up to 128 MiB",
            ),
        ),
        set(
            "keyslots_size_into_the_data",
            &[("/config/keyslots_size", json!("1019904"))],
            refused("the data of this LUKS2 volume would overlap its own header"),
        ),
        set(
            "json_size_0",
            &[("/config/json_size", json!("0"))],
            bad("`config.json_size` is 0, and must be 12288"),
        ),
        set(
            "json_size_of_another_header",
            &[("/config/json_size", json!("28672"))],
            bad("`config.json_size` is 28672, and must be 12288"),
        ),
        luks2(
            "cut_in_the_key_material",
            |v| v.bytes.truncate(100 << 10),
            refused(
                "this LUKS2 volume is cut off: it needs 294912 bytes, and the file or device has \
                 102400",
            ),
        ),
        luks2(
            "area_of_an_unknown_keyslot_upon_another",
            |v| {
                v.edit(|json| {
                    json["keyslots"]["5"] = json!({
                        "type": "acme",
                        "area": {"type": "raw", "offset": "32768", "size": "4096"},
                    });
                });
            },
            bad("the areas of keyslots 0 and 5 overlap"),
        ),
        luks2(
            "area_of_an_unknown_keyslot_behind_the_end",
            |v| {
                v.edit(|json| {
                    json["keyslots"]["5"] = json!({
                        "type": "acme",
                        "area": {"type": "raw", "offset": "18446744073709551615", "size": "1"},
                    });
                });
            },
            bad(
                "`keyslots.5.area.offset` is 18446744073709551615, and the area's 1 bytes must lie within 1015808 bytes from 32768",
            ),
        ),
    ]
}

fn keyslots() -> Vec<Case> {
    let one = |name: &str, pointer: &str, value: Value, expected| {
        set(
            name,
            &[(&format!("/keyslots/0/{pointer}"), value)],
            expected,
        )
    };
    vec![
        one(
            "key_size_0",
            "key_size",
            json!(0),
            untried(0, "`keyslots.0.key_size` is 0, and must be 1 to 512"),
        ),
        one(
            "key_size_513",
            "key_size",
            json!(513),
            untried(0, "`keyslots.0.key_size` is 513, and must be 1 to 512"),
        ),
        one(
            "key_size_2_to_the_31",
            "key_size",
            json!(1_u32 << 31),
            untried(
                0,
                "`keyslots.0.key_size` is 2147483648, and must be 1 to 512",
            ),
        ),
        one(
            "key_size_that_does_not_fit_its_area",
            "key_size",
            json!(64),
            untried(
                0,
                "`keyslots.0.area.size` is 131072, and the key material needs 256000",
            ),
        ),
        one(
            "area_key_size_0",
            "area/key_size",
            json!(0),
            untried(0, "`keyslots.0.area.key_size` is 0, and must be 1 to 512"),
        ),
        one(
            "area_key_size_2_to_the_31",
            "area/key_size",
            json!(1_u32 << 31),
            untried(
                0,
                "`keyslots.0.area.key_size` is 2147483648, and must be 1 to 512",
            ),
        ),
        one(
            "area_key_size_that_the_cipher_has_not",
            "area/key_size",
            json!(33),
            untried(0, "aes-xts-plain64 cannot take a key of 264 bits"),
        ),
        one(
            "area_cipher_unknown",
            "area/encryption",
            json!("rot13-ecb"),
            untried(0, "unknown cipher `rot13`"),
        ),
        one(
            "area_cipher_empty",
            "area/encryption",
            json!(""),
            bad("`keyslots.0.area.encryption` is not text of at least one character"),
        ),
        one(
            "area_cipher_of_9000_bytes",
            "area/encryption",
            json!("a".repeat(9000)),
            untried(
                0,
                "`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` is not a cipher specification",
            ),
        ),
        one(
            "area_cipher_of_brackets",
            "area/encryption",
            json!("capi:".to_owned() + &"xts(".repeat(2000)),
            untried(
                0,
                "`capi:xts(xts(xts(xts(xts(xts(xts(xts(xts(xts(xts(xts(xts(xts…` is not a cipher specification",
            ),
        ),
        one(
            "area_cipher_of_endless_keys",
            "area/encryption",
            json!("aes:18446744073709551615-cbc-lmk"),
            untried(0, "a cipher cannot have `18446744073709551615` keys"),
        ),
        one(
            "area_type_unknown",
            "area/type",
            json!("tape"),
            untried(0, "`keyslots.0.area.type` is `tape`, which is not known"),
        ),
        one(
            "af_type_unknown",
            "af/type",
            json!("luks3"),
            untried(0, "`keyslots.0.af.type` is `luks3`, which is not known"),
        ),
        one(
            "af_hash_unknown",
            "af/hash",
            json!("crc32"),
            untried(0, "`keyslots.0.af.hash` is `crc32`, which is not known"),
        ),
        one("af_hash_another", "af/hash", json!("sha512"), no_keyslot()),
        one(
            "stripes_0",
            "af/stripes",
            json!(0),
            untried(0, "`keyslots.0.af.stripes` is 0, and must be 1 to 16384"),
        ),
        one(
            "stripes_2_to_the_31",
            "af/stripes",
            json!(1_u32 << 31),
            untried(
                0,
                "`keyslots.0.af.stripes` is 2147483648, and must be 1 to 16384",
            ),
        ),
        one(
            "stripes_that_do_not_fit_the_area",
            "af/stripes",
            json!(4097),
            untried(
                0,
                "`keyslots.0.area.size` is 131072, and the key material needs 131584",
            ),
        ),
        luks2(
            "priority_3",
            |v| v.edit(|json| json["keyslots"]["0"]["priority"] = json!(3)),
            untried(0, "`keyslots.0.priority` is 3, and must be 0, 1 or 2"),
        ),
        luks2(
            "priority_ignore_of_the_one_that_opens",
            |v| {
                v.edit(|json| json["keyslots"]["0"]["priority"] = json!(0));
            },
            refused_secret(
                "none of the usable keyslots opens with this passphrase or key file; keyslot 0 is \
                 tried only if it is named",
            ),
        ),
        luks2_for(
            Attempt::OpenSlot(0),
            "priority_ignore_and_named",
            |v| {
                v.edit(|json| json["keyslots"]["0"]["priority"] = json!(0));
            },
            Expected::Opens,
        ),
        luks2(
            "keyslot_of_unknown_type_beside",
            |v| {
                v.edit(|json| json["keyslots"]["9"] = json!({"type": "acme", "area": {}}));
            },
            Expected::Opens,
        ),
        luks2_for(
            Attempt::OpenSlot(9),
            "keyslot_of_unknown_type_named",
            |v| {
                v.edit(|json| json["keyslots"]["9"] = json!({"type": "acme\u{1b}[2J", "area": {}}));
            },
            refused(
                "keyslot 9 cannot be used: `keyslots.9.type` is `acme·[2J`, which is not known",
            ),
        ),
        luks2_for(
            Attempt::OpenSlot(4_294_967_295),
            "keyslot_named_that_cannot_be",
            |_| (),
            refused("keyslot 4294967295 holds no key"),
        ),
        luks2(
            "keyslot_32",
            |v| v.replace("\"1\":{\"type\":\"luks2\"", "\"32\":{\"type\":\"luks2\""),
            bad("`digests.0.keyslots` is 1, and there is none with that number"),
        ),
        luks2(
            "keyslot_0_unbound",
            |v| v.set("/digests/0/keyslots", json!(["1"])),
            no_keyslot(),
        ),
        luks2_for(
            Attempt::OpenSlot(0),
            "keyslot_0_unbound_and_named",
            |v| {
                v.set("/digests/0/keyslots", json!(["1"]));
            },
            refused("keyslot 0 is unbound: its key does not belong to the data"),
        ),
        luks2(
            "keyslot_1_unbound",
            |v| v.set("/digests/0/keyslots", json!(["0"])),
            Expected::Opens,
        ),
        luks2(
            "no_keyslots",
            |v| {
                v.set("/keyslots", json!({}));
                v.set("/digests/0/keyslots", json!([]));
            },
            without_keyslots(Format::Luks2),
        ),
    ]
}
