//! Headers that are damaged, overwritten, replaced, kept and had back: what each
//! command does, and what is there afterwards, byte for byte.

mod damage;
mod kept;
mod restore;
mod sandbox;
mod sealed;
mod tcrypt;
mod tokens;
#[cfg(target_os = "linux")]
mod unreadable;
