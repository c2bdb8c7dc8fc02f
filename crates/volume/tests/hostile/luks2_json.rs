//! LUKS2: the JSON as a text.

use crate::kit::{Case, Expected, HEADER, Luks2, damaged, luks2};
use cryptmark_volume::Format;

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

/// The whole JSON area.
fn area(name: &str, area: impl AsRef<[u8]>, expected: Expected) -> Case {
    luks2(name, |v| v.set_area(area.as_ref()), expected)
}

/// One text of the JSON by another.
fn replaced(name: &str, from: &str, to: &str, expected: Expected) -> Case {
    luks2(name, |v| v.replace(from, to), expected)
}

pub fn cases() -> Vec<Case> {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let room = HEADER - 4096;
    vec![
        area(
            "json_empty",
            "",
            bad("its metadata is not usable JSON: EOF while parsing a value at line 1 column 0"),
        ),
        area(
            "json_of_spaces",
            "   ",
            bad("its metadata is not usable JSON: EOF while parsing a value at line 1 column 3"),
        ),
        area("json_a_list", "[]", bad("`json` is not an object")),
        area("json_a_number", "1", bad("`json` is not an object")),
        area("json_null", "null", bad("`json` is not an object")),
        area("json_an_empty_object", "{}", bad("`config` is missing")),
        area(
            "json_cut_off",
            r#"{"keyslots":{"0":"#,
            bad("its metadata is not usable JSON: EOF while parsing a value at line 1 column 17"),
        ),
        area(
            "json_of_noise",
            [0xa5; 64],
            bad("its metadata is not usable JSON: expected value at line 1 column 1"),
        ),
        area(
            "json_of_no_utf8",
            b"{\"\xff\":0}",
            bad("its metadata is not usable JSON: invalid unicode code point at line 1 column 3"),
        ),
        area(
            "json_with_half_a_surrogate",
            r#"{"\ud800":0}"#,
            bad("its metadata is not usable JSON: unexpected end of hex escape at line 1 column 9"),
        ),
        area(
            "json_nested_129_times",
            nested(129),
            bad("its metadata is not usable JSON: more than 31 levels at line 1 column 32"),
        ),
        area(
            "json_nested_6000_times",
            nested(6000),
            bad("its metadata is not usable JSON: more than 31 levels at line 1 column 32"),
        ),
        area(
            "json_of_open_brackets",
            vec![b'['; room - 1],
            bad("its metadata is not usable JSON: more than 31 levels at line 1 column 32"),
        ),
        area(
            "json_without_a_zero_behind_it",
            vec![b' '; room],
            bad("`json` is not text that ends with a zero byte"),
        ),
        area(
            "json_with_a_number_of_9000_digits",
            "9".repeat(9000),
            bad("`json` is not an object"),
        ),
        area(
            "json_with_a_name_of_3000_bytes_twice",
            {
                let key = "k".repeat(3000);
                format!("{{\"{key}\":0,\"{key}\":0}}")
            },
            bad(
                "its metadata is not usable JSON: `kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…` \
                 occurs twice at line 1 column 6011",
            ),
        ),
        area(
            "json_in_utf16",
            "{\0}\0",
            bad("its metadata is not usable JSON: EOF while parsing an object at line 1 column 1"),
        ),
        area(
            "json_with_a_byte_order_mark",
            "\u{feff}{}",
            bad("its metadata is not usable JSON: expected value at line 1 column 1"),
        ),
        luks2(
            "json_followed_by_more_json",
            |v| {
                let text = v.text() + "{}";
                v.set_area(text.as_bytes());
            },
            bad("its metadata is not usable JSON: trailing characters at line 1 column 1035"),
        ),
        luks2(
            "json_followed_by_a_zero_and_more",
            |v| {
                let text = v.text() + "\0{}";
                v.set_area(text.as_bytes());
            },
            bad("`json` is not an object with nothing before it and only zeros after it"),
        ),
        luks2(
            "json_with_spaces_around_it",
            |v| {
                let text = format!(" \n{}\t ", v.text());
                v.set_area(text.as_bytes());
            },
            bad("`json` is not an object with nothing before it and only zeros after it"),
        ),
        replaced(
            "json_with_a_trailing_comma",
            "\"config\":{",
            "\"config\":{,",
            bad("its metadata is not usable JSON: key must be a string at line 1 column 988"),
        ),
        replaced(
            "json_with_a_comment",
            "{\"keyslots\"",
            "{/**/\"keyslots\"",
            bad("its metadata is not usable JSON: key must be a string at line 1 column 2"),
        ),
        replaced(
            "keyslots_twice",
            "{\"keyslots\":",
            "{\"keyslots\":{},\"keyslots\":",
            bad("its metadata is not usable JSON: `keyslots` occurs twice at line 1 column 628"),
        ),
        replaced(
            "keyslot_0_twice",
            "{\"keyslots\":{",
            "{\"keyslots\":{\"0\":{},",
            bad("its metadata is not usable JSON: `0` occurs twice at line 1 column 319"),
        ),
        replaced(
            "member_that_a_terminal_obeys_twice",
            "{\"keyslots\":",
            "{\"\\u001b[2J\":0,\"\\u001b[2J\":0,\"keyslots\":",
            bad("its metadata is not usable JSON: `·[2J` occurs twice at line 1 column 28"),
        ),
        replaced(
            "offset_twice",
            "\"offset\":\"1048576\"",
            "\"offset\":\"1048576\",\"offset\":\"0\"",
            bad("its metadata is not usable JSON: `offset` occurs twice at line 1 column 690"),
        ),
        luks2(
            "json_of_200000_values_in_a_header_of_1_mib",
            |v| large(v, 200_000),
            bad("its metadata is not usable JSON: more than 65536 values at line 1 column 131079"),
        ),
        luks2(
            "json_of_60000_values_in_a_header_of_1_mib",
            |v| large(v, 60_000),
            bad("`config` is missing"),
        ),
    ]
}

/// A header of 1 MiB with a list of so many values, alone.
fn large(volume: &mut Luks2, values: usize) {
    let length = 1 << 20;
    volume.bytes.resize(4 << 20, 0);
    volume.destroy(HEADER);
    let list = vec!["0"; values].join(",");
    let json = format!("{{\"tokens\":[{list}]}}");
    volume.bytes[4096..length].fill(0);
    volume.bytes[4096..][..json.len()].copy_from_slice(json.as_bytes());
    volume.bytes[8..16].copy_from_slice(&(length as u64).to_be_bytes());
    volume.seal_length(0, length);
}
