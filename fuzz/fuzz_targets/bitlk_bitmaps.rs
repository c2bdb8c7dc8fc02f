//! The bitmaps of a BitLocker volume, of any bytes:
//! `cargo +nightly fuzz run bitlk_bitmaps fuzz/corpus/bitlk_bitmaps fuzz/seeds/bitlk_bitmaps -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::bitlk_bitmaps(input));
