//! LUKS2: the members of the JSON, and the kinds of their values.

use crate::kit::{Case, Expected, Luks2, damaged, luks2, untried};
use cryptmark_volume::Format;
use serde_json::{Value, json};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

/// One text of the JSON by another.
fn replaced(name: &str, from: &str, to: &str, expected: Expected) -> Case {
    luks2(name, |v| v.replace(from, to), expected)
}

/// One value of the JSON by another.
fn set(name: &str, pointer: &str, value: Value, expected: Expected) -> Case {
    luks2(name, |v| v.set(pointer, value), expected)
}

/// A member of the JSON less.
fn without(name: &str, object: &str, member: &str, expected: Expected) -> Case {
    let forget = |v: &mut Luks2| {
        v.edit(|json| {
            let object = json.pointer_mut(object).unwrap().as_object_mut();
            object.unwrap().remove(member).unwrap();
        });
    };
    luks2(name, forget, expected)
}

pub fn cases() -> Vec<Case> {
    let mut cases = kinds();
    cases.extend(numbers());
    cases.extend(members());
    cases.extend(odd());
    cases
}

fn kinds() -> Vec<Case> {
    vec![
        set(
            "keyslots_a_list",
            "/keyslots",
            json!([]),
            bad("`keyslots` is not an object"),
        ),
        set(
            "keyslot_null",
            "/keyslots/1",
            json!(null),
            bad("`keyslots.1` is not an object"),
        ),
        set(
            "segments_null",
            "/segments",
            json!(null),
            bad("`segments` is not an object"),
        ),
        set(
            "digests_a_text",
            "/digests",
            json!("0"),
            bad("`digests` is not an object"),
        ),
        set(
            "tokens_a_number",
            "/tokens",
            json!(0),
            bad("`tokens` is not an object"),
        ),
        set(
            "config_a_list",
            "/config",
            json!([]),
            bad("`config` is not an object"),
        ),
        set(
            "area_a_text",
            "/keyslots/0/area",
            json!("raw"),
            bad("`keyslots.0.area` is not an object"),
        ),
        set(
            "keyslot_type_a_number",
            "/keyslots/0/type",
            json!(2),
            bad("`keyslots.0.type` is not a text"),
        ),
        set(
            "digest_keyslots_an_object",
            "/digests/0/keyslots",
            json!({}),
            bad("`digests.0.keyslots` is not a list"),
        ),
        set(
            "digest_keyslots_numbers",
            "/digests/0/keyslots",
            json!([0]),
            bad("`digests.0.keyslots.0` is not a 64-bit number in quotes"),
        ),
        set(
            "flags_a_text",
            "/config/flags",
            json!("allow-discards"),
            bad("`config.flags` is not a list"),
        ),
        set(
            "flags_numbers",
            "/config/flags",
            json!([1]),
            bad("`config.flags.0` is not a text"),
        ),
        set(
            "token_without_type",
            "/tokens",
            json!({"0": {"keyslots": []}}),
            bad("`tokens.0.type` is missing"),
        ),
        set(
            "token_without_keyslots",
            "/tokens",
            json!({"0": {"type": "x"}}),
            bad("`tokens.0.keyslots` is missing"),
        ),
        set(
            "token_32",
            "/tokens",
            json!({"32": {"type": "x", "keyslots": []}}),
            Expected::Opens,
        ),
        set(
            "token_named_by_a_word",
            "/tokens",
            json!({"first": {}}),
            bad("`tokens.first` is not named by a valid number"),
        ),
        set(
            "token_named_so_that_a_terminal_obeys",
            "/tokens",
            json!({"\u{1b}[2J": {}}),
            bad("`tokens.·[2J` is not named by a valid number"),
        ),
        set(
            "token_minus_1",
            "/tokens",
            json!({"-1": {}}),
            bad("`tokens.-1` is not named by a valid number"),
        ),
        set(
            "token_with_a_leading_zero",
            "/tokens",
            json!({"00": {}}),
            bad("`tokens.00` is not named by a valid number"),
        ),
    ]
}

fn numbers() -> Vec<Case> {
    let offset = |name: &str, value: Value| {
        let told = "`segments.0.offset` is not a 64-bit number in quotes";
        set(name, "/segments/0/offset", value, bad(told))
    };
    let no_integer = || bad("`keyslots.0.af.stripes` is not an integer");
    let no_u32 = || {
        let told = "`keyslots.0.af.stripes` is not a number of 0 to 4294967295";
        untried(0, told)
    };
    let stripes = |name: &str, value: Value, expected: Expected| {
        set(name, "/keyslots/0/af/stripes", value, expected)
    };
    vec![
        offset("offset_a_number", json!(1_048_576)),
        offset("offset_negative", json!("-1")),
        offset("offset_with_a_sign", json!("+1048576")),
        set(
            "offset_with_a_leading_zero",
            "/segments/0/offset",
            json!("01048576"),
            Expected::Opens,
        ),
        offset("offset_with_a_space", json!(" 1048576")),
        offset("offset_in_hexadecimal", json!("0x100000")),
        offset("offset_with_a_unit", json!("1MiB")),
        offset("offset_a_fraction", json!("1048576.0")),
        offset("offset_2_to_the_64", json!("18446744073709551616")),
        offset("offset_empty", json!("")),
        offset("offset_in_other_digits", json!("١٠")),
        stripes("stripes_in_quotes", json!("4000"), no_integer()),
        stripes("stripes_negative", json!(-4000), no_u32()),
        stripes("stripes_a_fraction", json!(4000.0), no_integer()),
        stripes("stripes_with_an_exponent", json!(4e3), no_integer()),
        stripes("stripes_2_to_the_32", json!(1_u64 << 32), no_u32()),
        stripes("stripes_true", json!(true), no_integer()),
        replaced(
            "stripes_2_to_the_64",
            "\"stripes\":4000",
            "\"stripes\":18446744073709551616",
            no_u32(),
        ),
        replaced(
            "stripes_with_a_leading_zero",
            "\"stripes\":4000",
            "\"stripes\":04000",
            bad("its metadata is not usable JSON: invalid number at line 1 column 80"),
        ),
        replaced(
            "stripes_beyond_all_floats",
            "\"stripes\":4000",
            "\"stripes\":1e999",
            no_integer(),
        ),
        replaced(
            "stripes_not_a_number",
            "\"stripes\":4000",
            "\"stripes\":NaN",
            bad("its metadata is not usable JSON: expected value at line 1 column 79"),
        ),
    ]
}

fn members() -> Vec<Case> {
    [
        ("keyslots", "", "keyslots"),
        ("segments", "", "segments"),
        ("digests", "", "digests"),
        ("tokens", "", "tokens"),
        ("config", "", "config"),
        ("json_size", "/config", "json_size"),
        ("keyslots_size", "/config", "keyslots_size"),
        ("keyslot_type", "/keyslots/0", "type"),
        ("area_offset", "/keyslots/0/area", "offset"),
        ("area_encryption", "/keyslots/0/area", "encryption"),
        ("af", "/keyslots/0", "af"),
        ("kdf", "/keyslots/0", "kdf"),
        ("kdf_salt", "/keyslots/0/kdf", "salt"),
        ("segment_size", "/segments/0", "size"),
        ("segment_iv_tweak", "/segments/0", "iv_tweak"),
        ("digest_salt", "/digests/0", "salt"),
    ]
    .map(|(name, object, member)| {
        let path = format!("{}/{member}", object).replace('/', ".");
        let missing = format!("`{}` is missing", &path[1..]);
        without(&format!("{name}_missing"), object, member, bad(&missing))
    })
    .into()
}

/// Unknown members do not cause a volume to be refused.
fn odd() -> Vec<Case> {
    let token =
        json!({"7": {"type": "acme", "keyslots": ["0", "9"], "more": [1e300, {"x": null}]}});
    vec![
        set("token_of_unknown_type", "/tokens", token, Expected::Opens),
        luks2(
            "config_flags_unknown",
            |v| v.edit(|json| json["config"]["flags"] = json!(["x"])),
            Expected::Opens,
        ),
        luks2(
            "config_member_unknown",
            |v| v.edit(|json| json["config"]["x"] = json!({})),
            Expected::Opens,
        ),
        luks2(
            "outermost_member_unknown",
            |v| v.edit(|json| json["x"] = json!([[]])),
            Expected::Opens,
        ),
        luks2(
            "keyslot_member_unknown",
            |v| v.edit(|json| json["keyslots"]["0"]["x"] = json!("y")),
            Expected::Opens,
        ),
        luks2(
            "no_mandatory_requirements",
            |v| {
                v.edit(|json| json["config"]["requirements"] = json!({"optional": ["x"]}));
            },
            Expected::Opens,
        ),
    ]
}
