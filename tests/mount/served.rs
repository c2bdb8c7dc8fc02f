//! `volume serve --fuse`: the plaintext in the place of a file; and how what is
//! served otherwise is ended.

use crate::mounts::{MIB, Mounts, PROGRAM, kill};
use crate::read_and_write;
use block::FileDevice;
use block::model::{Discarded, Model};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::process::{Command, Stdio};
use testkit::{Expect as _, have, wait_until};

fn serve(sandbox: &Mounts, options: &[&str]) -> Command {
    let mut serve = sandbox.subcommand("serve");
    serve.arg("x.img").args(options);
    serve
}

fn in_background(sandbox: &Mounts) {
    serve(sandbox, &["--fuse", "f", "--daemon"]).succeeds();
}

fn umount(sandbox: &Mounts, what: &str) {
    sandbox.subcommand("umount").arg(what).succeeds();
    assert!(!sandbox.has_mounts_at("f"));
    assert!(sandbox.status().is_none());
}

#[test]
fn a_file_is_the_volume_and_goes_with_it() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    let file = sandbox.path("f");
    for there in [false, true] {
        if there {
            fs::write(&file, "").unwrap();
        }
        in_background(&sandbox);
        let metadata = fs::metadata(&file).unwrap();
        assert!(metadata.is_file());
        assert_eq!((metadata.len(), metadata.mode() & 0o777), (2 * MIB, 0o600));
        let options = block::FileOptions {
            write: true,
            engine: Some(block::Engine::Threads),
            ..block::FileOptions::default()
        };
        let device = FileDevice::open(&file, &options).unwrap();
        Model {
            discarded: Discarded::Zeros,
            longest: MIB + 4096,
            steps: 60,
            ..Model::new(u64::from(there))
        }
        .run(&device);
        sandbox.subcommand("umount").arg("f").fails(4);
        drop(device);
        umount(&sandbox, if there { "x.img" } else { "f" });
        assert_eq!(file.exists(), there);
    }
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn signals_end_it_and_take_the_file_away() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = serve(&sandbox, &["--fuse", "f"]).spawn().unwrap();
        wait_until("it does not happen", || sandbox.has_mounts_at("f"));
        let file = read_and_write(&sandbox.path("f"));
        file.write_all_at(b"written", 4096).unwrap();
        drop(file);
        kill(sandbox.pid(), signal);
        assert_eq!(server.wait().unwrap().code(), Some(0));
        assert!(!sandbox.path("f").exists());
        assert!(sandbox.status().is_none());
    }
    in_background(&sandbox);
    let bytes = sandbox.read("f");
    assert_eq!(&bytes[4096..4103], b"written");
    umount(&sandbox, "f");
}

#[test]
fn a_killed_server_leaves_no_obstacle() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    for round in 0..4_u8 {
        in_background(&sandbox);
        let file = read_and_write(&sandbox.path("f"));
        file.write_all_at(&[round; 4096], 8192).unwrap();
        file.sync_all().unwrap();
        drop(file);
        kill(sandbox.pid(), Signal::KILL);
        wait_until("it does not happen", || {
            sandbox.status().unwrap()["alive"] == false
        });
        assert!(
            fs::metadata(sandbox.path("f")).is_err(),
            "the mount is stuck"
        );
        // Both ways out of it.
        if round % 2 == 0 {
            umount(&sandbox, "f");
            assert!(!sandbox.path("f").exists());
        }
        in_background(&sandbox);
        let bytes = sandbox.read("f");
        assert_eq!(bytes[8192..12288], [round; 4096]);
        umount(&sandbox, "f");
        assert!(!sandbox.path("f").exists());
    }
}

/// A log on a full disk, or a terminal that is gone, does not stop a server.
#[test]
fn a_server_that_cannot_complain_goes_on() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    // The last MiB of the image cannot be written.
    let script = format!(
        "trap '' XFSZ; ulimit -f {}; exec {PROGRAM} volume serve x.img --passphrase-file line \
         --fuse f 2>/dev/full >/dev/null",
        17 * MIB / 512
    );
    for by_signal in [false, true] {
        let mut server = Command::new("sh");
        server.args(["-c", &script]).current_dir(sandbox.path(""));
        server.env("XDG_RUNTIME_DIR", sandbox.path(""));
        let mut server = server.stdin(Stdio::null()).spawn().unwrap();
        wait_until("it does not happen", || sandbox.has_mounts_at("f"));
        let file = read_and_write(&sandbox.path("f"));
        for _ in 0..20 {
            file.write_all_at(&[1; 4096], MIB + MIB / 2).unwrap_err();
            file.write_all_at(&[2; 4096], 0).unwrap();
        }
        if by_signal {
            kill(sandbox.pid(), Signal::TERM);
            // It says that it is in use.
            sandbox.subcommand("umount").arg("f").fails(4);
            assert!(server.try_wait().unwrap().is_none());
            drop(file);
        } else {
            drop(file);
            let said = sandbox.subcommand("umount").arg("f").fails(1);
            assert!(said.contains("20 writes and flushes"), "{said}");
        }
        // What it could not write, its exit code says.
        assert_eq!(server.wait().unwrap().code(), Some(1));
    }
}

/// What is written to a file without a name is lost with the server.
#[test]
fn an_image_that_is_removed_meanwhile_is_not_well() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    in_background(&sandbox);
    let file = read_and_write(&sandbox.path("f"));
    file.write_all_at(&[1; 4096], 0).unwrap();
    fs::remove_file(sandbox.path("x.img")).unwrap();
    let error = file.sync_all().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    drop(file);
    let said = sandbox.subcommand("umount").arg("f").fails(4);
    assert!(said.contains("has the only copy of its data"), "{said}");
    let errors = sandbox.status().unwrap()["errors"].to_string();
    assert!(errors.contains("was removed"), "{errors}");
    kill(sandbox.pid(), Signal::TERM);
}

#[test]
fn what_is_there_stays() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    sandbox.write("letter", "dear");
    sandbox.write("wrong", "another\n");
    sandbox.write("empty", "");
    symlink("empty", sandbox.path("link")).unwrap();
    for (code, file) in [
        (4, "letter"),
        (4, "x.img"),
        (4, "link"),
        (2, "d"),
        (2, "nowhere/f"),
        (2, ".."),
    ] {
        for daemon in [&[][..], &["--daemon"]] {
            let options = [&["--fuse", file], daemon].concat();
            serve(&sandbox, &options).fails(code);
        }
    }
    let mut wrong = Command::new(PROGRAM);
    wrong.args(["volume", "serve", "x.img", "--fuse", "f"]);
    wrong.args(["--passphrase-file", "wrong"]);
    wrong.current_dir(sandbox.path("")).fails(3);
    assert!(!sandbox.path("f").exists());
    assert_eq!(sandbox.read("letter"), b"dear");
    sandbox.subcommand("umount").arg("f").fails(2);
    for both in [
        &["--fuse", "f", "--nbd", "s"][..],
        &["--name", "n", "--fuse", "f"],
        &["--nbd", "s", "--allow-other"],
    ] {
        let output = serve(&sandbox, both).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{both:?}");
    }
}

#[test]
fn disks_of_the_kernel_need_their_driver() {
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    if fs::exists("/dev/ublk-control").unwrap() {
        println!("skipped: this kernel has the ublk driver");
        return;
    }
    let said = serve(&sandbox, &["--ublk"]).fails(1);
    let expected = match cfg!(feature = "ublk") {
        true => "this kernel has no ublk driver",
        false => "this program was built without ublk",
    };
    assert!(said.contains(expected), "{said}");
}

/// What a user has mounted, root reaches only if the user and the system agree.
#[test]
fn a_users_file_for_root() {
    if !have(&["setpriv", "fusermount3", "unshare", "losetup"]) {
        return;
    }
    let Some(sandbox) = Mounts::of_user(18) else {
        return;
    };
    // A mount namespace has its own configuration of FUSE.
    let script = |configuration: &str, options: &str, work: &str| {
        sandbox.write("fuse.conf", configuration);
        let user = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        let script = format!(
            "touch /etc/fuse.conf; mount --bind fuse.conf /etc/fuse.conf || exit 9
             {user} {PROGRAM} volume {options} --daemon --passphrase-file line || exit $?
             {work}
             {user} {PROGRAM} volume umount x.img"
        );
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", &script]);
        shell.env("XDG_RUNTIME_DIR", sandbox.path(""));
        shell.current_dir(sandbox.path(""));
        shell
    };
    script("", "serve x.img --fuse f --allow-other", "").fails(1);
    assert!(!sandbox.path("f").exists());
    let unseen = "cat f >/dev/null 2>&1 && exit 8";
    script("", "serve x.img --fuse f", unseen).succeeds();
    let allowed = "user_allow_other\n";
    for (options, file) in [
        ("serve x.img --fuse f --allow-other", "f"),
        ("mount x.img d --as file --allow-other", "d/volume"),
    ] {
        let work = format!(
            "disk=$(losetup --find --show {file}) || exit 7
             test $(blockdev --getsize64 $disk) = {} || exit 6
             dd if=/dev/zero of=$disk bs=4096 count=1 oflag=direct status=none || exit 5
             losetup --detach $disk
             setpriv --reuid=1 --regid=1 --clear-groups cat {file} >/dev/null 2>&1 && exit 4
             # The device lets go a little later.
             for wait in 1 2 3 4 5 6 7 8 9 10; do
                 test -z \"$(losetup --associated {file})\" && break
                 sleep 0.1
             done",
            2 * MIB
        );
        script(allowed, options, &work).succeeds();
    }
}
