//! How mounts end: by signals, by `umount`, by themselves, and by force.

use crate::mounts::{MIB, Mounts, kill};
use crate::read_and_write;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use testkit::{Expect as _, wait_until};

#[test]
fn signals_end_it_and_leave_nothing() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = sandbox.in_foreground(&["--as", "file"]);
        let file = read_and_write(&sandbox.path("d/volume"));
        file.write_all_at(b"written", 4096).unwrap();
        drop(file);
        kill(sandbox.pid(), signal);
        assert_eq!(server.wait().unwrap().code(), Some(0));
        assert!(sandbox.is_tidy());
    }
    sandbox.mount(&["--as", "file", "--read-only"]);
    let mut found = [0; 7];
    let file = fs::File::open(sandbox.path("d/volume")).unwrap();
    file.read_exact_at(&mut found, 4096).unwrap();
    assert_eq!(&found, b"written");
    drop(file);
    sandbox.umount();
}

#[test]
fn what_is_in_use_stays() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    let mut server = sandbox.in_foreground(&["--as", "file"]);
    let file = read_and_write(&sandbox.path("d/volume"));
    sandbox.subcommand("umount").arg("d").fails(4);
    sandbox.subcommand("umount").arg("x.img").fails(4);
    kill(sandbox.pid(), Signal::TERM);
    std::thread::sleep(Duration::from_millis(800));
    file.write_all_at(b"still there", 0).unwrap();
    assert!(server.try_wait().unwrap().is_none());
    drop(file);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(sandbox.is_tidy());

    // The second signal takes it away.
    let mut server = sandbox.in_foreground(&["--as", "file"]);
    let file = read_and_write(&sandbox.path("d/volume"));
    let pid = sandbox.pid();
    // Signals that come at once count as one.
    let status = loop {
        kill(pid, Signal::TERM);
        std::thread::sleep(Duration::from_millis(100));
        if let Some(status) = server.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(1));
    assert!(file.write_all_at(b"nobody", 0).is_err());
    assert!(sandbox.is_tidy());
}

#[test]
fn an_unmount_from_outside_ends_it() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    let mut server = sandbox.in_foreground(&["--as", "file"]);
    std::process::Command::new("umount")
        .arg(sandbox.path("d"))
        .succeeds();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(sandbox.is_tidy());
}

#[test]
fn idle_volumes_are_locked() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    let mut server = sandbox.in_foreground(&["--as", "file", "--lock-after", "1"]);
    let file = read_and_write(&sandbox.path("d/volume"));
    std::thread::sleep(Duration::from_millis(2500));
    assert!(server.try_wait().unwrap().is_none(), "it is in use");
    file.write_all_at(b"x", 0).unwrap();
    drop(file);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(sandbox.is_tidy());
}

/// What was synced is there after `kill -9`, and the mount is no obstacle.
#[test]
fn killed_servers_are_tidied_up() {
    let Some(sandbox) = Mounts::new(40) else {
        return;
    };
    for round in 0..6_u8 {
        sandbox.mount(&["--as", "file"]);
        let pid = sandbox.pid();
        let file = read_and_write(&sandbox.path("d/volume"));
        let writer = std::thread::spawn(move || {
            let mut synced = 0;
            for at in 0_u64.. {
                let data = vec![round + 1; 64 << 10];
                let offset = at % 200 * (64 << 10);
                if file.write_all_at(&data, offset).is_err() || file.sync_data().is_err() {
                    break;
                }
                synced = (at + 1).min(200);
            }
            synced
        });
        std::thread::sleep(Duration::from_millis(50 + 30 * u64::from(round)));
        kill(pid, Signal::KILL);
        let synced = writer.join().unwrap();
        wait_until("it does not happen", || {
            sandbox.status().unwrap()["alive"] == false
        });
        assert!(
            fs::read_dir(sandbox.path("d")).is_err(),
            "the mount is stuck"
        );
        // Both ways out of it.
        if round % 2 == 0 {
            sandbox.umount();
        }
        sandbox.mount(&["--as", "file"]);
        let mut found = vec![0; (synced * (64 << 10)) as usize];
        let file = read_and_write(&sandbox.path("d/volume"));
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found.iter().all(|&byte| byte == round + 1), "round {round}");
        drop(file);
        sandbox.umount();
    }
}

#[test]
fn loop_devices_of_killed_servers_go() {
    let Some(sandbox) = Mounts::new(48) else {
        return;
    };
    sandbox.mount(&["--as", "file"]);
    let volume = sandbox.path("d/volume");
    std::process::Command::new("mkfs.ext4")
        .arg("-q")
        .arg(volume)
        .succeeds();
    sandbox.umount();
    sandbox.mount(&[]);
    sandbox.write("d/kept", vec![9; MIB as usize]);
    std::process::Command::new("sync")
        .arg("-f")
        .arg(sandbox.path("d/kept"))
        .succeeds();
    kill(sandbox.pid(), Signal::KILL);
    wait_until("it does not happen", || {
        sandbox.status().unwrap()["alive"] == false
    });
    let status = sandbox.status().unwrap();
    let device = status["places"].as_array().unwrap().iter();
    let device = device.filter_map(|place| place["loop"].as_str()).next();
    let device = std::path::PathBuf::from(device.unwrap());
    assert!(block::LoopDevice::backing_of(&device).is_some());
    let said = sandbox.subcommand("umount").arg("d").fails(1);
    assert!(said.contains("was killed"), "{said}");
    assert!(sandbox.is_tidy());
    let private = |path: &std::path::Path| path.to_string_lossy().contains("cryptmark");
    let left = block::LoopDevice::backing_of(&device).filter(|path| private(path));
    assert_eq!(left, None);
    sandbox.mount(&[]);
    assert_eq!(sandbox.read("d/kept"), vec![9; MIB as usize]);
    sandbox.umount();
}

/// What a killed server had, another one may have by now.
#[test]
fn the_place_of_a_killed_server_is_not_taken_from_another() {
    let Some(sandbox) = Mounts::new(48) else {
        return;
    };
    sandbox.mount(&["--as", "file"]);
    std::process::Command::new("mkfs.ext4")
        .arg("-q")
        .arg(sandbox.path("d/volume"))
        .succeeds();
    sandbox.umount();
    fs::copy(sandbox.path("x.img"), sandbox.path("y.img")).unwrap();
    for (how, seen) in [("file", "d/volume"), ("fs", "d/lost+found")] {
        sandbox.mount(&["--as", how]);
        kill(sandbox.pid(), Signal::KILL);
        wait_until("it does not happen", || {
            sandbox.status().unwrap()["alive"] == false
        });
        std::process::Command::new("umount")
            .arg("-l")
            .arg(sandbox.path("d"))
            .succeeds();
        let mount = ["y.img", "d", "--daemon", "--as", how];
        sandbox.subcommand("mount").args(mount).succeeds();
        let ended = sandbox.subcommand("umount").arg("x.img").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        // Of a file system, what may be missing is said.
        assert_eq!(ended.status.code(), Some(i32::from(how == "fs")), "{said}");
        let there = sandbox.path(seen).exists();
        sandbox.subcommand("umount").arg("y.img").succeeds();
        assert!(there, "as {how}: it is taken away");
        assert!(sandbox.is_tidy(), "as {how}");
    }
}
