//! FileVault 2's metadata, of any bytes:
//! `cargo +nightly fuzz run fvault2_metadata fuzz/corpus/fvault2_metadata fuzz/seeds/fvault2_metadata -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::fvault2_metadata(input));
