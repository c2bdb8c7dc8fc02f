//! `kill -9` of the server that has a volume's bytes, under verified load.
//!
//! Every read is compared with what was written; in the end the file behind the
//! server is opened without it.

use crate::sandbox::{Kind, MIB, create, given, sandbox, start};
use block::BlockDevice;
use block::model::{Discarded, Model};
use cipher::Key;
use serve::nbd::{NbdDevice, Place, Uri};
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::{Running, Sandbox};
use volume::{Access, Limits, Opening, Secret, Terms};

/// Bytes of the volume's data.
const DATA: u64 = 2 * MIB;

/// LUKS2's header.
const HEADER: u64 = 16 * MIB;

fn uri(sandbox: &Sandbox) -> String {
    format!("nbd+unix:///?socket={}", sandbox.path("back").display())
}

/// Has `load` done while the server is killed `kills` times; how often that was.
fn killing(
    kind: Kind,
    sandbox: &Sandbox,
    back: Running,
    kills: u64,
    load: impl Fn(u64) + Sync,
) -> Running {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            for round in 0.. {
                load(round);
                if over.load(Ordering::SeqCst) {
                    return round + 1;
                }
            }
            0
        });
        let mut back = back;
        for kill in 0..kills {
            std::thread::sleep(Duration::from_millis(50 + kill * 7919 % 150));
            assert!(!loading.is_finished(), "{kind:?}: the load has failed");
            drop(back);
            std::thread::sleep(Duration::from_millis(kill * 31 % 60));
            back = kind.start(sandbox);
        }
        over.store(true, Ordering::SeqCst);
        let rounds = loading.join().unwrap();
        println!("{kind:?}: {kills} kills, {rounds} rounds of the load");
        back
    })
}

/// The plaintext of the volume on `device`, with discards.
pub fn opened(device: &NbdDevice) -> Box<dyn BlockDevice + '_> {
    let opening = Opening::Luks2 { slot: None };
    let key = Secret::Passphrase(Key::from_slice(b"a passphrase"));
    let limits = Limits::default();
    let watch = |_, _| ControlFlow::Continue(());
    let terms = Terms {
        access: Access::Write,
        ..Terms::reading(&limits, &watch)
    };
    let opened = opening.unlock(device, device, &key, &terms);
    let opened = opened.unwrap().allowing_discards();
    opened.device(device, device).unwrap()
}

/// A load that compares all it reads.
pub fn model(seed: u64) -> Model {
    Model {
        longest: 128 << 10,
        depth: 16,
        discarded: Discarded::Anything,
        ..Model::new(seed)
    }
}

/// Serves the volume on the export, at the socket `front`.
fn serve(sandbox: &Sandbox) -> (Running, NbdDevice) {
    let arguments = format!(
        "volume serve {} --passphrase-file line --trim pass --nbd front",
        uri(sandbox)
    );
    let mut command = sandbox.cryptmark(&arguments);
    command.stdout(Stdio::piped());
    let front = start(command, &sandbox.path("front"));
    let client = NbdDevice::connect(&Place::Unix(sandbox.path("front")), "").unwrap();
    (front, client)
}

/// A request that takes longer than was said, beside the load.
fn no_hang(device: &dyn BlockDevice, over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::SeqCst) {
        let begun = Instant::now();
        device.read_at(0, &mut [0; 4096]).unwrap();
        longest = longest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(longest < NbdDevice::PATIENCE, "a request took {longest:?}");
    longest
}

fn survives(kind: Kind) {
    if !kind.is_here() {
        return;
    }
    let kills = given("NBD_KILLS", 3);
    let sandbox = sandbox();
    sandbox.write_zeros("disk", HEADER + DATA);
    let back = kind.start(&sandbox);
    create(&sandbox, &uri(&sandbox));

    // In this process, by the device itself.
    let device = NbdDevice::open(&Uri::parse(uri(&sandbox).as_ref()).unwrap()).unwrap();
    let plain = opened(&device);
    assert_eq!(plain.geometry().size, DATA);
    let over = AtomicBool::new(false);
    let back = std::thread::scope(|scope| {
        let watching = scope.spawn(|| no_hang(&device, &over));
        let back = killing(kind, &sandbox, back, kills, |round| {
            model(round + 1).run(&plain)
        });
        over.store(true, Ordering::SeqCst);
        println!(
            "{kind:?}: the longest request took {:?}",
            watching.join().unwrap()
        );
        back
    });
    let mut expected = vec![0; DATA as usize];
    plain.read_at(0, &mut expected).unwrap();
    plain.flush().unwrap();
    drop(plain);
    drop(device);
    drop(back);
    let reading = "volume export disk --passphrase-file line --yes --output out";
    sandbox.ok(reading);
    assert!(is_same(&sandbox.read("out"), &expected), "{kind:?}");

    // By the program, which serves it to somebody else.
    let back = kind.start(&sandbox);
    let (front, client) = serve(&sandbox);
    let back = killing(kind, &sandbox, back, kills, |round| {
        model(round + 100).run(&client)
    });
    client.read_at(0, &mut expected).unwrap();
    client.flush().unwrap();
    drop(client);
    drop(back);
    drop(front);
    sandbox.ok(reading);
    assert!(is_same(&sandbox.read("out"), &expected), "{kind:?}");
}

/// Whether both have the same bytes where the first has no hole: what was
/// discarded is zeros to who passes discards on, and noise to who does not.
pub fn is_same(found: &[u8], expected: &[u8]) -> bool {
    let same = |(found, expected): (&[u8], &[u8])| {
        found == expected || expected.iter().all(|&byte| byte == 0)
    };
    found.len() == expected.len() && found.chunks(512).zip(expected.chunks(512)).all(same)
}

#[test]
fn nbdkit_killed_under_load_loses_nothing() {
    survives(Kind::NbdkitFile);
}

#[test]
fn qemu_nbd_killed_under_load_loses_nothing() {
    survives(Kind::Qemu);
}

#[test]
fn our_server_killed_under_load_loses_nothing() {
    survives(Kind::Ours);
}

/// The program says what it is, and ends as it should.
#[test]
fn a_volume_on_an_export_is_served_in_the_background() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", HEADER + DATA);
    let back = Kind::Ours.start(&sandbox);
    let place = "nbd+unix:///?socket=back";
    create(&sandbox, place);
    let serving =
        "volume serve nbd+unix:///?socket=back --passphrase-file line --nbd front --daemon";
    let mut child = sandbox
        .cryptmark(serving)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(line.starts_with(&format!("{place} is served: ")), "{line}");
    let client = NbdDevice::connect(&Place::Unix(sandbox.path("front")), "").unwrap();
    client.write_at(0, &[5; 4096]).unwrap();
    client.flush().unwrap();
    // It works in another folder now, and finds the server all the same.
    drop(back);
    let _back = Kind::Ours.start(&sandbox);
    let mut bytes = [0; 4096];
    client.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [5; 4096]);
    let refused =
        sandbox.run("volume serve nbd+unix:///?socket=./back --passphrase-file line --nbd other");
    assert_eq!(refused.status.code(), Some(4), "it is the same place");
    drop(client);
    sandbox.ok(&format!("volume umount {place}"));
    assert!(!sandbox.path("front").exists());
}
