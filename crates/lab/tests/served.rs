//! Volumes behind NBD servers, this program's and others, as systems under test.

use cryptmark_lab::system::Program;
use cryptmark_lab::system::served;
use cryptmark_lab::system::{Encryption, Place, Storage, SystemId, Target};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

fn storage(at: &Path) -> Storage {
    let place = Place {
        at,
        size: 16 << 20,
        seed: 4,
        overwrite: false,
        engine: None,
    };
    Storage::prepare(place, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn encryption(cipher: &str, sector: u32) -> Encryption {
    Encryption::parse(cipher, Some(512), sector, None).unwrap()
}

#[test]
fn our_server_encrypts_what_it_stores() {
    let folder = tempfile::tempdir().unwrap();
    let storage = storage(folder.path());
    for at_once in [false, true] {
        let device = Arc::clone(&storage.device);
        let encryption = encryption("twofish-xts-plain64", 4096);
        let target = served::builtin(device, encryption, at_once).unwrap();
        assert_eq!(target.system, SystemId::BuiltinNbd);
        assert_eq!(target.device().geometry().size, 16 << 20);
        target.self_check(&*storage.device).unwrap();
    }
}

#[test]
fn our_file_encrypts_what_it_stores() {
    let folder = tempfile::tempdir().unwrap();
    let storage = storage(folder.path());
    for at_once in [false, true] {
        let device = Arc::clone(&storage.device);
        let encryption = encryption("serpent-xts-plain64", 4096);
        let target = match served::builtin_file(device, encryption, at_once) {
            Err(error) if error.is_absence() => return println!("skipped: FUSE: {error}"),
            target => target.unwrap(),
        };
        assert_eq!(target.system, SystemId::BuiltinFuse);
        assert_eq!(target.device().geometry().size, 16 << 20);
        target.self_check(&*storage.device).unwrap();
    }
}

#[test]
fn a_mounted_system_is_named_by_its_directory() {
    let system: SystemId = "path:/mnt/vault".parse().unwrap();
    assert_eq!(system.directory(), Some(Path::new("/mnt/vault")));
    assert_eq!(system.as_str(), "path:/mnt/vault");
    assert!(system.is_served() && !system.takes_ciphers());
    assert!("path:".parse::<SystemId>().is_err());
    let folder = tempfile::tempdir().unwrap();
    let target = Target::mounted(system.as_str(), storage(folder.path()));
    assert_eq!(target.system, system);
    assert!(target.encryption.is_none() && target.elsewhere.is_some());
    target.device().write_at(0, &[1; 4096]).unwrap();
}

#[test]
fn programs_serve_a_volume_and_end_with_the_target() {
    let folder = tempfile::tempdir().unwrap();
    for program in Program::ALL {
        if program.version().is_none() {
            println!("skipped: there is no {}", program.name());
            continue;
        }
        let storage = storage(folder.path());
        let target = storage
            .served_by(program, encryption("aes-xts-plain64", 4096))
            .unwrap();
        let used = target.encryption.unwrap();
        assert_eq!(used.sector_size.bytes(), 512);
        target.self_check(&*storage.device).unwrap();
        assert!(running(program) > 0);
        let again = storage
            .served_by(program, encryption("aes-xts-plain64", 512))
            .unwrap();
        again.self_check(&*storage.device).unwrap();
        drop((again, target));
        assert_eq!(running(program), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Children of this process that are the program; of one that does not stay its
/// parent's child, what it has mounted.
fn running(program: Program) -> usize {
    let name = match program {
        Program::Qemu => "qemu-nbd",
        Program::Nbdkit => "nbdkit",
        Program::Veracrypt => {
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            return mounts.matches("veracrypt_aux_mnt").count();
        }
    };
    let own = std::process::id();
    let mut count = 0;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let Some((before, after)) = stat.rsplit_once(") ") else {
            continue;
        };
        let parent = after.split(' ').nth(1).unwrap_or_default();
        if before.ends_with(&format!("({name}")) && parent == own.to_string() {
            count += 1;
        }
    }
    count
}

#[test]
fn what_a_program_does_not_have_is_told_in_its_words() {
    let folder = tempfile::tempdir().unwrap();
    if Program::Nbdkit.version().is_none() {
        return println!("skipped: there is no nbdkit");
    }
    let files = storage(folder.path());
    let refused = files.served_by(Program::Nbdkit, encryption("serpent-xts-plain64", 512));
    let said = refused.err().unwrap().to_string();
    assert!(
        said.contains("does not serve serpent-xts-plain64: nbdkit"),
        "{said}"
    );

    let memory = Storage::memory(16 << 20, 1).unwrap();
    let refused = memory.served_by(Program::Nbdkit, encryption("aes-xts-plain64", 512));
    let said = refused.err().unwrap().to_string();
    assert!(said.contains("only on files and disks"), "{said}");
}
