//! The superblock and the journal of dm-integrity, of any bytes:
//! `cargo +nightly fuzz run integrity fuzz/corpus/integrity fuzz/seeds/integrity -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::integrity(input));
