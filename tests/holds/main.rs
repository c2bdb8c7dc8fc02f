//! Every command on a volume in every state: who may have it, and what is left of it.
//!
//! A row is a [`State`], a column a [`commands::Command`]. What is refused changes no byte,
//! and both programs open the volume afterwards.
#![cfg(target_os = "linux")]

mod commands;
mod kit;
mod states;

use kit::row;
use states::*;

/// A test for each state: its name in a sentence, what sets it up, what becomes of
/// commands, and what refusals say.
macro_rules! rows {
    ($($test:ident: $name:literal, $set_up:path, $expected:path, $names:expr;)*) => {
        $(#[test]
        fn $test() {
            row(&State { name: $name, set_up: $set_up, expected: $expected, names: $names });
        })*
    };
}

/// What is said of a process of this program.
const OURS: &[&str] = &["is in use by cryptmark (process "];

rows! {
    a_free_volume: "nobody's", free, nobodys, &[];
    served_for_writing: "served", served, written, &[];
    served_for_reading: "served read-only", served_read_only, read, &[];
    mounted_for_writing: "mounted", mounted, written, &[];
    mounted_for_reading: "mounted read-only", mounted_read_only, read, &[];
    being_imported: "written by import", imported, written, OURS;
    being_exported: "read by export", exported, read, OURS;
    by_a_hard_link: "served, by a hard link", hard_linked, written, OURS;
    by_a_symbolic_link: "served, by a symbolic link", soft_linked, written, &[];
    by_a_bind_mount: "served, by a bind mount", bound, written, OURS;
    locked_by_flock: "locked by flock", locked, read, &["is in use by flock (process "];
    below_a_loop_device: "behind a loop device", below_a_loop, read, &["is in use by /dev/loop"];
    below_a_loop_device_by_a_link: "behind a loop device by a link", below_a_loop_by_a_link, read,
        &["is in use by /dev/loop"];
    a_loop_device_on_a_served_file: "a loop device on a file that is served", served_below_a_loop,
        read, OURS;
    a_served_loop_device: "a loop device that is served", served_loop, written, &[];
}
