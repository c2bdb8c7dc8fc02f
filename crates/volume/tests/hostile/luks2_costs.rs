//! LUKS2: key derivations that would take hours, or all memory.

use crate::kit::{
    Attempt, Case, Expected, Luks2, damaged, luks2, luks2_for, no_keyslot, refused, untried,
};
use cryptmark_volume::Format;
use serde_json::{Value, json};

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

const SALT: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn kdf(name: &str, slot: u32, kdf: Value, expected: Expected) -> Case {
    luks2(
        name,
        |v| v.set(&format!("/keyslots/{slot}/kdf"), kdf),
        expected,
    )
}

fn argon2(name: &str, time: u32, memory: u32, lanes: u32, expected: Expected) -> Case {
    let costs = json!({
        "type": "argon2id", "time": time, "memory": memory, "cpus": lanes, "salt": SALT,
    });
    kdf(name, 0, costs, expected)
}

fn pbkdf2(name: &str, slot: u32, iterations: Value, expected: Expected) -> Case {
    let costs = json!({
        "type": "pbkdf2", "hash": "sha256", "iterations": iterations, "salt": SALT,
    });
    kdf(name, slot, costs, expected)
}

/// Nine keyslots more, each of which alone may cost what it does.
fn nine_more(volume: &mut Luks2, kdf: &Value) {
    const FIRST_AREA: u64 = 32 << 10;
    const AREA: u64 = 64 << 10;
    volume.edit(|json| {
        for number in 2..11 {
            let mut slot = json["keyslots"]["1"].clone();
            slot["kdf"] = kdf.clone();
            slot["key_size"] = json!(16);
            let offset = FIRST_AREA + (number + 2) * AREA;
            slot["area"]["offset"] = json!(offset.to_string());
            slot["area"]["size"] = json!(AREA.to_string());
            json["keyslots"][number.to_string()] = slot;
            let of_digest = json["digests"]["0"]["keyslots"].as_array_mut();
            of_digest.unwrap().push(json!(number.to_string()));
        }
    });
}

fn most_of_pbkdf2() -> Value {
    json!({"type": "pbkdf2", "hash": "sha256", "iterations": 900_000_000, "salt": SALT})
}

fn most_of_argon2() -> Value {
    json!({"type": "argon2id", "time": 64, "memory": 4 << 20, "cpus": 4, "salt": SALT})
}

/// Costs of all key slots together.
pub fn cases_of_all() -> Vec<Case> {
    vec![
        luks2(
            "iterations_too_many_in_all",
            |v| {
                nine_more(v, &most_of_pbkdf2());
                v.set("/digests/0/iterations", json!(900_000_000));
            },
            refused(
                "all key slots together take about 3600 s on one core, and the limit is 1500 s",
            ),
        ),
        luks2(
            "passes_times_memory_too_many_in_all",
            |v| nine_more(v, &most_of_argon2()),
            refused(
                "all key slots together take about 1691 s on one core, and the limit is 1500 s",
            ),
        ),
        luks2_for(
            Attempt::OpenSlot(0),
            "costs_too_many_in_all_beside_the_keyslot_of_choice",
            |v| nine_more(v, &most_of_argon2()),
            Expected::Opens,
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    const MOST: u32 = u32::MAX;
    let bomb = || {
        untried(
            0,
            "the key derivation takes about 858 s on one core, and the limit is 188 s",
        )
    };
    vec![
        pbkdf2("iterations_2_to_the_32", 0, json!(MOST), bomb()),
        pbkdf2(
            "iterations_2_to_the_32_in_a_later_slot",
            1,
            json!(MOST),
            Expected::Opens,
        ),
        pbkdf2(
            "iterations_one_too_many",
            0,
            json!(1_000_000_000),
            untried(
                0,
                "the key derivation takes about 200 s on one core, and the limit is 188 s",
            ),
        ),
        pbkdf2(
            "iterations_0",
            0,
            json!(0),
            untried(
                0,
                "the key derivation has 0 iterations, and the minimum is 1",
            ),
        ),
        pbkdf2(
            "iterations_negative",
            0,
            json!(-1),
            untried(
                0,
                "`keyslots.0.kdf.iterations` is not a number of 0 to 4294967295",
            ),
        ),
        pbkdf2(
            "iterations_2_to_the_63",
            0,
            json!(1_u64 << 63),
            untried(
                0,
                "`keyslots.0.kdf.iterations` is not a number of 0 to 4294967295",
            ),
        ),
        pbkdf2(
            "iterations_in_quotes",
            0,
            json!("1000"),
            bad("`keyslots.0.kdf.iterations` is not an integer"),
        ),
        luks2(
            "digest_iterations_2_to_the_32",
            |v| v.set("/digests/0/iterations", json!(MOST)),
            refused("the key derivation takes about 858 s on one core, and the limit is 188 s"),
        ),
        luks2(
            "digest_iterations_0",
            |v| v.set("/digests/0/iterations", json!(0)),
            refused("the key derivation has 0 iterations, and the minimum is 1"),
        ),
        luks2(
            "iterations_2_to_the_32_in_an_unbound_slot",
            |v| {
                v.set("/keyslots/1/kdf/iterations", json!(MOST));
                v.set("/digests/0/keyslots", json!(["0"]));
            },
            Expected::Opens,
        ),
        luks2(
            "iterations_2_to_the_32_in_an_ignored_slot",
            |v| {
                v.set("/keyslots/1/kdf/iterations", json!(MOST));
                v.edit(|json| json["keyslots"]["1"]["priority"] = json!(0));
            },
            Expected::Opens,
        ),
        argon2(
            "memory_2_to_the_32_kib",
            4,
            MOST,
            4,
            untried(
                0,
                "the key derivation needs 4294967295 KiB of memory, and the limit is 4194304",
            ),
        ),
        argon2(
            "memory_one_kib_too_many",
            1,
            (4 << 20) + 1,
            4,
            untried(
                0,
                "the key derivation needs 4194305 KiB of memory, and the limit is 4194304",
            ),
        ),
        argon2(
            "memory_0",
            4,
            0,
            4,
            untried(
                0,
                "the key derivation has 0 KiB of memory, and the minimum is 32",
            ),
        ),
        argon2(
            "memory_less_than_the_lanes_need",
            4,
            31,
            4,
            untried(
                0,
                "the key derivation has 31 KiB of memory, and the minimum is 32",
            ),
        ),
        argon2(
            "passes_2_to_the_32",
            MOST,
            1024,
            1,
            untried(
                0,
                "the key derivation takes about 3078632 s on one core, and the limit is 188 s",
            ),
        ),
        argon2(
            "passes_times_memory_too_many",
            65,
            4 << 20,
            4,
            untried(
                0,
                "the key derivation takes about 190 s on one core, and the limit is 188 s",
            ),
        ),
        argon2(
            "passes_0",
            0,
            1024,
            4,
            untried(0, "the key derivation has 0 passes, and the minimum is 1"),
        ),
        argon2(
            "lanes_0",
            4,
            1024,
            0,
            untried(0, "the key derivation has 0 lanes, and the minimum is 1"),
        ),
        argon2(
            "lanes_5",
            4,
            1024,
            5,
            untried(0, "the key derivation needs 5 lanes, and the limit is 4"),
        ),
        argon2(
            "lanes_255",
            4,
            1 << 20,
            255,
            untried(0, "the key derivation needs 255 lanes, and the limit is 4"),
        ),
        argon2(
            "lanes_2_to_the_32",
            4,
            MOST,
            MOST,
            untried(
                0,
                "the key derivation needs 4294967295 lanes, and the limit is 4",
            ),
        ),
        argon2(
            "all_costs_2_to_the_32",
            MOST,
            MOST,
            MOST,
            untried(
                0,
                "the key derivation needs 4294967295 lanes, and the limit is 4",
            ),
        ),
        argon2("cheap_and_another_derivation", 1, 32, 4, no_keyslot()),
        kdf(
            "derivation_unknown",
            0,
            json!({"type": "scrypt", "salt": SALT}),
            untried(0, "`keyslots.0.kdf.type` is `scrypt`, which is not known"),
        ),
        kdf(
            "derivation_empty",
            0,
            json!({}),
            bad("`keyslots.0.kdf.type` is missing"),
        ),
        kdf(
            "derivation_argon2d",
            0,
            json!({"type": "argon2d", "salt": SALT}),
            untried(0, "`keyslots.0.kdf.type` is `argon2d`, which is not known"),
        ),
        kdf(
            "derivation_with_unknown_hash",
            0,
            json!({"type": "pbkdf2", "hash": "crc32", "iterations": 1, "salt": SALT}),
            untried(0, "`keyslots.0.kdf.hash` is `crc32`, which is not known"),
        ),
        kdf(
            "derivation_argon2_with_costs_of_pbkdf2",
            0,
            json!({"type": "argon2id", "hash": "sha256", "iterations": 1, "salt": SALT}),
            bad("`keyslots.0.kdf.time` is missing"),
        ),
        luks2(
            "salt_empty_for_pbkdf2",
            |v| v.set("/keyslots/0/kdf/salt", json!("")),
            bad("`keyslots.0.kdf.salt` is not text of at least one character"),
        ),
        luks2(
            "salt_of_1025_bytes",
            |v| v.set("/keyslots/0/kdf/salt", json!("AAAA".repeat(341) + "AAA=")),
            untried(
                0,
                "`keyslots.0.kdf.salt` is 1025 bytes long, and must be at most 1024",
            ),
        ),
        luks2(
            "salt_no_base64",
            |v| v.set("/keyslots/0/kdf/salt", json!("====")),
            untried(0, "`keyslots.0.kdf.salt` is not base64"),
        ),
        luks2(
            "salt_a_list",
            |v| v.set("/keyslots/0/kdf/salt", json!([0])),
            bad("`keyslots.0.kdf.salt` is not a text"),
        ),
        kdf(
            "salt_of_7_bytes_for_argon2",
            0,
            json!({"type": "argon2id", "time": 1, "memory": 32, "cpus": 1, "salt": "AAAAAAAAAA=="}),
            untried(
                0,
                "the key derivation has 7 bytes of salt, and the minimum is 8",
            ),
        ),
    ]
}
