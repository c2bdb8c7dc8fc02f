//! A LUKS1 header, of any bytes:
//! `cargo +nightly fuzz run luks1_header fuzz/corpus/luks1_header fuzz/seeds/luks1_header -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::luks1_header(input));
