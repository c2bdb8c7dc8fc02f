//! A binary LUKS2 header and its JSON, of any bytes:
//! `cargo +nightly fuzz run luks2_header fuzz/corpus/luks2_header fuzz/seeds/luks2_header -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::luks2_header(input));
