//! Power cuts under an export of an encrypted volume: what was acknowledged by
//! a flush is there, and no sector holds what nobody wrote.
//!
//! ```text
//! clients ─▶ Export ─▶ TRIM policy ─▶ volume ─▶ Record ─▶ Delay ─▶ memory
//!                                                 │
//!                          image after a cut ◀────┘ ─▶ opened, read, judged
//! ```
//!
//! `POWER_LOSS_SAMPLES=SAMPLES cargo test --test power_loss -- --nocapture` takes more samples.

mod client;
mod volumes;

use block::layer::{Cut, Delay, Effect, Fault, Log, Record, Rule, Trigger, TrimPolicy};
use block::{BlockDevice, OperationKind, RamDevice};
use cipher::SectorSize;
use client::{Broken, CLIENTS, Client, History};
use serve::Export;
use std::sync::Arc;
use std::time::Duration;
use volume::Access;
use volumes::{SIZE, Volume, bytes_of, disk};

/// What each client does in one record, and how many cuts that is good for.
const STEPS: u32 = 40;
const CUTS: usize = 2500;

/// Cuts of each volume when tests are run, and in the long form.
const SAMPLES: usize = 240;

/// One in so many also loses power while a journal is being replayed.
const MENDED: usize = 8;

type Recorded = Record<Delay<Arc<RamDevice>>>;

fn samples() -> usize {
    std::env::var("POWER_LOSS_SAMPLES").map_or(SAMPLES, |text| text.parse().unwrap())
}

/// What one run of the clients leaves behind.
struct Run {
    log: Log,
    history: History,
}

/// Lets the clients work on `volume`, with `between` above the record.
fn run<D: BlockDevice + 'static>(
    volume: &Volume,
    seed: u64,
    between: impl FnOnce(Arc<Recorded>) -> D,
) -> Run {
    // Slow enough for requests to meet.
    let delay = Delay::new(volume.device(), Duration::ZERO, Duration::from_micros(300));
    let record = Arc::new(Record::new(delay));
    let plain = volume.open(Arc::new(between(record.clone())), Access::Write);
    let before = bytes_of(&*plain);
    assert_eq!(before.len() as u64, SIZE);
    let export = Export::new(plain.clone(), serve::Access::Write);
    let tick = || record.tick();
    let clients = std::thread::scope(|scope| {
        let work = |number| {
            let (export, tick) = (&export, &tick);
            scope.spawn(move || Client::new(export, tick, number, seed).work(STEPS))
        };
        let working: Vec<_> = (0..CLIENTS).map(work).collect();
        let done = working.into_iter().map(|client| client.join().unwrap());
        done.collect::<Vec<_>>()
    });
    let history = History::new(&before, &clients, volume.is_sealed());
    assert!(bytes_of(&*plain) == history.after(SIZE), "seed {seed}");
    Run {
        log: record.log(),
        history,
    }
}

impl Run {
    /// Cuts the power and opens what is left.
    fn judge(&self, volume: &Volume, cut: Cut, mend: bool) -> Result<(), Broken> {
        let mut image = volume.image.clone();
        self.log.play(cut, &mut image);
        let device = disk(&image);
        let found = bytes_of(&*volume.open(device.clone(), Access::Read));
        self.history.judge(&found, cut.at)?;
        if mend {
            let record = Arc::new(Record::new(device));
            let mended = bytes_of(&*volume.open(record.clone(), Access::Write));
            assert!(mended == found, "reading and mending agree");
            let log = record.log();
            for again in log.cuts(2, cut.at) {
                let mut image = image.clone();
                log.play(again, &mut image);
                let opened = volume.open(disk(&image), Access::Read);
                assert!(bytes_of(&*opened) == found, "{cut:?}, then {again:?}");
            }
        }
        Ok(())
    }
}

/// Takes samples of `volume`, in runs with different seeds.
fn survives(name: &str, volume: &Volume) {
    let samples = samples();
    let (mut cut, mut entries, mut overtaken) = (0, 0, 0);
    for seed in 0..samples.div_ceil(CUTS) as u64 {
        let run = run(volume, seed, |record| record);
        let cuts = run.log.cuts((samples - cut).min(CUTS), seed);
        for (number, &at) in cuts.iter().enumerate() {
            let mend = volume.is_sealed() && number % MENDED == 0;
            if let Err(Broken { offset, what }) = run.judge(volume, at, mend) {
                panic!("{name}, seed {seed}: {what}, at byte {offset}, after {at:?}");
            }
        }
        cut += cuts.len();
        entries += run.log.len();
        overtaken += run.log.overtaken();
    }
    println!(
        "{name}: {cut} cuts in {entries} changes and flushes, {overtaken} changes in flight at a flush"
    );
    assert_eq!(cut, samples);
}

#[test]
fn luks2_under_every_trim_policy() {
    for policy in TrimPolicy::ALL {
        for sector in [SectorSize::B512, SectorSize::B4096] {
            let name = format!("LUKS2, {} bytes, {policy}", sector.bytes());
            survives(&name, &Volume::luks2(sector, policy));
        }
    }
}

#[test]
fn truecrypt_under_every_trim_policy() {
    for policy in TrimPolicy::ALL {
        survives(&format!("TrueCrypt, {policy}"), &Volume::truecrypt(policy));
    }
}

#[test]
fn sealed_sectors_with_their_journal() {
    for (sector, sections) in [(SectorSize::B512, 3), (SectorSize::B4096, 2)] {
        let name = format!("AES-GCM, {} bytes, {sections} sections", sector.bytes());
        survives(&name, &Volume::sealed(sector, sections));
    }
}

/// A volume over a layer that lies must be found out.
fn is_caught(volume: &Volume, lie: Rule) -> bool {
    let run = run(volume, 1, |record| Fault::new(record, [lie]));
    let cuts = run.log.cuts(SAMPLES, 1);
    cuts.into_iter()
        .any(|cut| run.judge(volume, cut, false).is_err())
}

#[test]
fn a_lying_flush_is_caught() {
    let lie = Rule::on(OperationKind::Flush, Trigger::From(1), Effect::Lose);
    for volume in [
        Volume::luks2(SectorSize::B512, TrimPolicy::Block),
        Volume::truecrypt(TrimPolicy::Pass),
        Volume::sealed(SectorSize::B512, 3),
    ] {
        assert!(is_caught(&volume, lie));
    }
}
