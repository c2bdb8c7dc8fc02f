//! Files that are given as keys, of any bytes:
//! `cargo +nightly fuzz run key_file fuzz/corpus/key_file fuzz/seeds/key_file -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::key_file(input));
