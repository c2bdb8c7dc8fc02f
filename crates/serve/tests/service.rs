//! Services: their records, and where nothing is mounted.

#![cfg(target_os = "linux")]

use serve::service::{
    Ending, Found, OwnRecord, Pinned, Record, ServiceError, check, check_file, check_folder, joined,
};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn record() -> Record {
    Record {
        image: "/x.img".into(),
        others: vec!["/y.img".into()],
        access: "write".into(),
        trim: "block".into(),
        pid: 1,
        since: String::new(),
        places: Vec::new(),
        connections: 0,
        errors: Vec::new(),
        unconfined: None,
        ending: None,
    }
}

/// A reader needs several calls for a long text, and the service writes in between.
#[test]
fn a_record_is_read_whole_while_it_is_written() {
    let mut own = OwnRecord::new(record()).unwrap();
    let path = own.path().to_owned();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let whole = (0..2000).all(|_| Found::at(path.clone()).is_some());
            done.store(true, Ordering::Relaxed);
            assert!(whole);
        });
        let mut long = false;
        while !done.load(Ordering::Relaxed) {
            long = !long;
            let errors = match long {
                true => vec!["an error".repeat(1000)],
                false => Vec::new(),
            };
            own.change(|record| record.errors = errors).unwrap();
        }
    });
}

#[test]
fn only_its_service_makes_a_record_alive() {
    let file = tempfile::NamedTempFile::new().unwrap();
    serde_json::to_writer(&file, &record()).unwrap();
    let alive = || Found::at(file.path().to_owned()).unwrap().alive;
    assert!(!alive());
    let somebody = File::open(file.path()).unwrap();
    somebody.lock_shared().unwrap();
    assert!(!alive(), "who asks at the same time is not the service");
    somebody.unlock().unwrap();
    file.as_file().lock().unwrap();
    assert!(alive());
}

#[test]
fn the_last_words_are_heard_without_a_name() {
    let mut record = record();
    let file = tempfile::NamedTempFile::new().unwrap();
    serde_json::to_writer(&file, &record).unwrap();
    file.as_file().lock().unwrap();
    let found = Found::at(file.path().to_owned()).unwrap();
    assert!(found.alive && !found.wait(Duration::ZERO));
    assert!(found.last_words().is_none());
    record.ending = Some(Ending {
        what: "the disk is full".into(),
        remedy: "Make room.".into(),
    });
    let text = serde_json::to_vec(&record).unwrap();
    file.as_file().write_all_at(&text, 0).unwrap();
    drop(file);
    assert!(found.wait(Duration::ZERO));
    assert_eq!(found.last_words().unwrap().what, "the disk is full");
}

#[test]
fn a_server_that_panics_has_failed() {
    let ended = |panics: bool| {
        joined(std::thread::spawn(move || -> Result<(), ServiceError> {
            assert!(!panics, "as it is meant to");
            Ok(())
        }))
    };
    assert!(ended(false).is_ok());
    assert!(matches!(ended(true), Err(ServiceError::Panicked)));
}

#[test]
fn folders_of_the_system_are_refused_if_confirmed_as_well() {
    let system = [
        "/",
        "/usr",
        "/usr/local/bin",
        "/etc",
        "/etc/ssl",
        "/home",
        "/bin",
        "/lib/x",
        "/tmp",
        "/var/lib",
        "/dev",
        "/dev/shm",
        "/proc/1",
        "/root",
        "/boot/efi",
        "/run",
    ];
    for path in system {
        for confirmed in [false, true] {
            let refused = check(Path::new(path), confirmed).unwrap_err();
            assert!(refused.is_refusal(), "{path}");
        }
    }
    for path in [
        "/mnt",
        "/mnt/x",
        "/home/me/x",
        "/media/me/x",
        "/tmp/x",
        "/dev/shm/x",
        "/usrx",
    ] {
        assert!(check_folder(Path::new(path)).is_ok(), "{path}");
        assert!(check_file(Path::new(path)).is_ok(), "{path}");
    }
    assert!(check_file(Path::new("/etc/new")).is_err());
}

#[test]
fn a_directory_with_files_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    assert!(check(folder.path(), false).is_ok());
    fs::write(folder.path().join("mine"), "").unwrap();
    assert!(check(folder.path(), false).unwrap_err().is_refusal());
    assert!(check(folder.path(), true).is_ok());
}

#[test]
fn what_is_moved_or_replaced_is_refused() {
    let desk = tempfile::tempdir().unwrap();
    let desk = desk.path().canonicalize().unwrap();
    let (above, elsewhere) = (desk.join("above"), desk.join("elsewhere"));
    let path = above.join("here");
    let moved = |from: &Path| fs::rename(from, &elsewhere).unwrap();
    for (name, change) in [
        ("moved", &(|| moved(&path)) as &dyn Fn()),
        ("removed", &|| fs::remove_dir(&path).unwrap()),
        ("replaced", &|| {
            moved(&path);
            fs::create_dir(&path).unwrap();
        }),
        ("replaced by a link", &|| {
            moved(&path);
            symlink("/usr", &path).unwrap();
        }),
        ("moved above", &|| {
            moved(&above);
            symlink("/usr", &above).unwrap();
        }),
    ] {
        fs::create_dir_all(&path).unwrap();
        let pinned = Pinned::new(&path).unwrap();
        assert_eq!(pinned.path(), path);
        pinned.check().unwrap();
        change();
        assert!(pinned.check().unwrap_err().is_refusal(), "{name}");
        let _ = fs::remove_file(&above);
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&above);
        let _ = fs::remove_dir_all(&elsewhere);
    }
    symlink("nothing", &elsewhere).unwrap();
    assert_eq!(Pinned::new(&elsewhere).unwrap().path(), elsewhere);
}
