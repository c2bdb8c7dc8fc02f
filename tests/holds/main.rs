//! Every command on a volume in every state: who may have it, and what is left of it.
//!
//! A row is a [`State`], a column a [`commands::Command`]. What is refused changes no byte,
//! and both programs open the volume afterwards.
#![cfg(target_os = "linux")]

mod at_once;
mod commands;
mod damage;
mod hidden;
mod kit;
mod states;
mod veracrypt;

use damage::*;
use kit::{Format, row};
use states::*;

/// A test for each state of volumes of a format: its name in a sentence, what sets it up,
/// what becomes of commands, and what refusals say. A volume that does not open is
/// `unopened`, and one that has no second passphrase `opens_by_one`.
macro_rules! rows {
    (@ opens) => { &["pass", "second"] };
    (@ opens_by_one) => { &["pass"] };
    (@ unopened) => { &[] };
    ($format:ident:
     $($test:ident: $name:literal, $set_up:path, $expected:path, $says:expr, $opens:ident;)*) => {
        $(#[test]
        fn $test() {
            row(&State {
                format: Format::$format,
                name: $name,
                set_up: $set_up,
                expected: $expected,
                says: $says,
                opens: rows!(@ $opens),
            });
        })*
    };
}

pub(crate) use rows;

/// What is said of a process of this program.
const OURS: &[&str] = &["is in use by cryptmark (process "];

/// What is said of a loop device.
const LOOP: &[&str] = &["is in use by /dev/loop"];

rows! {
    Luks2:
    a_free_volume: "nobody's", free, done, &[], opens;
    served_for_writing: "served", served, written, &[], opens;
    served_for_reading: "served read-only", served_read_only, read, &[], opens;
    served_by_another_program: "served by qemu-nbd", served_by_qemu, read, &["in use by qemu-nbd"], opens;
    mounted_for_writing: "mounted", mounted, written, &[], opens;
    mounted_for_reading: "mounted read-only", mounted_read_only, read, &[], opens;
    being_imported: "written by import", imported, written, OURS, opens;
    being_exported: "read by export", exported, read, OURS, opens;
    being_reencrypted: "reencrypted", reencrypted, written, OURS, opens;
    by_a_hard_link: "served, by a hard link", hard_linked, written, OURS, opens;
    by_a_symbolic_link: "served, by a symbolic link", soft_linked, written, &[], opens;
    by_a_bind_mount: "served, by a bind mount", bound, written, OURS, opens;
    by_its_header: "served, with its header apart", served_apart, written, &[], opens;
    locked_by_flock: "locked by flock", locked, read, &["is in use by flock (process "], opens;
    below_a_loop_device: "behind a loop device", below_a_loop, read, LOOP, opens;
    below_a_loop_device_by_a_link: "behind a loop device by a link", below_a_loop_by_a_link, read,
        LOOP, opens;
    a_loop_device_on_a_served_file: "a loop device on a file that is served", served_below_a_loop,
        read, OURS, opens;
    a_served_loop_device: "a loop device that is served", served_loop, written, &[], opens;
    a_held_loop_device: "a loop device that another program has", held_loop, read,
        &["is in use"], opens;
    a_read_only_device: "a read-only device", read_only_loop, unwritable, &[], opens;
    no_multiple_of_a_sector: "longer than its last sector", with_a_tail, done, &[], opens;
    first_copy_bad: "without its first copy", first_copy_spoilt, done, &[], opens;
    second_copy_bad: "without its second copy", second_copy_spoilt, done, &[], opens;
    first_copy_unreadable: "without its first copy, which a disk does not give", first_copy_unread,
        on_a_fixed_size, &[], opens;
    second_copy_unreadable: "without its second copy, which a disk does not give",
        second_copy_unread, on_a_fixed_size, &[], opens;
    reencrypted_by_another_program: "reencrypted by cryptsetup", reencrypted_by_them,
        in_their_hands, &["in use by cryptsetup"], opens_by_one;
    interrupted: "in the middle of a reencryption", interrupted_by_us, half_done, &[],
        opens_by_one;
    interrupted_by_another_program: "in the middle of a reencryption of cryptsetup",
        interrupted_by_them, half_done, &[], opens_by_one;
    on_a_full_disk: "on a full disk", on_full_disk, without_room, &[], opens;
    a_foreign_keyslot: "with a keyslot of a foreign kind", with_foreign_keyslot, done, &[], opens;
    a_foreign_requirement: "with a foreign requirement", with_foreign_requirement, foreign, &[],
        opens;
    header_wiped: "without a header", wiped, headless, &[], unopened;
}
