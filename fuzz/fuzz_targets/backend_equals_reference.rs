//! Every backend equals the reference, whatever the cipher, the mode, the key
//! and the sectors: `cargo +nightly fuzz run backend_equals_reference`.
//!
//! The tests of the cipher crate run the same check on random inputs.

#![no_main]

#[path = "../../crates/cipher/tests/it/any_input.rs"]
mod any_input;

libfuzzer_sys::fuzz_target!(|input: &[u8]| any_input::backend_equals_reference(input));
