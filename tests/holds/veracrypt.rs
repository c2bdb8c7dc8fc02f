//! VeraCrypt volumes in the states of the matrix: what others make of them is as with LUKS2,
//! and a header that is damaged looks like a wrong passphrase.

use crate::commands::Command;
use crate::damage::*;
use crate::kit::{Format, Volumes, row};
use crate::states::*;
use crate::{LOOP, OURS, rows};

/// Nothing opens: what does not need the header is done.
fn without_headers(command: &Command) -> Outcome {
    match command.name {
        "create" | "create luks2" | "create plain" | "run" | "export onto it" => Outcome::Done,
        "header restore" => Outcome::Done,
        "header backup" | "lab run" => Outcome::Keeps,
        _ => Outcome::Fails(3),
    }
}

/// The header looks as one of another passphrase does: `header repair` tries its copy.
fn without_header(command: &Command) -> Outcome {
    match command.name {
        "header repair" => Outcome::Done,
        // It looks at the copy as well.
        "header restore from it" => Outcome::Keeps,
        _ => without_headers(command),
    }
}

/// The copy opens it, and what would write all of it anew asks for the header first.
fn by_its_copy(command: &Command) -> Outcome {
    match command.name {
        "resize" | "reencrypt" => Outcome::Fails(2),
        _ => done(command),
    }
}

/// The same, on a disk.
fn by_its_copy_on_a_disk(command: &Command) -> Outcome {
    match by_its_copy(command) {
        Outcome::Done => on_a_disk(command),
        other => other,
    }
}

/// A backup has both, and a restore takes the one that can be read.
fn on_a_disk(command: &Command) -> Outcome {
    match command.name {
        "header restore from it" => Outcome::Done,
        _ => on_a_fixed_size(command),
    }
}

/// What is in it is noise but for the holes of its data.
fn without_room_for_data(command: &Command) -> Outcome {
    match command.name {
        "create luks2" | "create plain" | "export onto it" => Outcome::Fails(1),
        "resize" => Outcome::Fails(1),
        "reencrypt" => Outcome::Fails(1),
        _ => done(command),
    }
}

/// What is behind its last sector is somebody's.
fn before_a_tail(command: &Command) -> Outcome {
    match command.name {
        "resize" => Outcome::Fails(4),
        _ => done(command),
    }
}

/// Where the salt is: no key comes of it.
fn salt_spoilt(sandbox: &Volumes) -> Result<Set, String> {
    let mut bytes = sandbox.read("image");
    bytes[10] ^= 1;
    sandbox.write("image", bytes);
    Ok(Set::at("image"))
}

rows! {
    Veracrypt:
    a_free_volume: "nobody's", free, done, &[], opens_by_one;
    served_for_writing: "served", served, written, &[], opens_by_one;
    served_for_reading: "served read-only", served_read_only, read, &[], opens_by_one;
    served_by_another_program: "served by qemu-nbd", served_by_qemu, read, &["in use by qemu-nbd"],
        opens_by_one;
    mounted_for_writing: "mounted", mounted, written, &[], opens_by_one;
    mounted_for_reading: "mounted read-only", mounted_read_only, read, &[], opens_by_one;
    being_imported: "written by import", imported, written, OURS, opens_by_one;
    being_exported: "read by export", exported, read, OURS, opens_by_one;
    by_a_hard_link: "served, by a hard link", hard_linked, written, OURS, opens_by_one;
    by_a_symbolic_link: "served, by a symbolic link", soft_linked, written, &[], opens_by_one;
    by_a_bind_mount: "served, by a bind mount", bound, written, OURS, opens_by_one;
    locked_by_flock: "locked by flock", locked, read, &["is in use by flock (process "],
        opens_by_one;
    below_a_loop_device: "behind a loop device", below_a_loop, read, LOOP, opens_by_one;
    a_loop_device_on_a_served_file: "a loop device on a file that is served", served_below_a_loop,
        read, OURS, opens_by_one;
    a_served_loop_device: "a loop device that is served", served_loop, written, &[], opens_by_one;
    a_held_loop_device: "a loop device that another program has", held_loop, read,
        &["is in use"], opens_by_one;
    a_read_only_device: "a read-only device", read_only_loop, unwritable, &[], opens_by_one;
    no_multiple_of_a_sector: "longer than its last sector", with_a_tail, before_a_tail, &[],
        opens_by_one;
    header_bad: "without its header", first_copy_spoilt, by_its_copy, &[], opens_by_one;
    salt_bad: "without the salt of its header", salt_spoilt, without_header, &[], unopened;
    copy_bad: "without the copy of its header", second_copy_spoilt, done, &[], opens_by_one;
    header_unreadable: "without its header, which a disk does not give", first_copy_unread,
        by_its_copy_on_a_disk, &[], opens_by_one;
    copy_unreadable: "without the copy of its header, which a disk does not give",
        second_copy_unread, on_a_disk, &[], opens_by_one;
    on_a_full_disk: "on a full disk", on_full_disk, without_room_for_data, &[], opens_by_one;
    header_and_copy_wiped: "without header and copy", wiped, without_headers, &[], unopened;
}
