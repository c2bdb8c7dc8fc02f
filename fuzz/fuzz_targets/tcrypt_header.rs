//! Headers of TrueCrypt and VeraCrypt, as a passphrase decrypts them, of any bytes:
//! `cargo +nightly fuzz run tcrypt_header fuzz/corpus/tcrypt_header fuzz/seeds/tcrypt_header -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::tcrypt_header(input));
