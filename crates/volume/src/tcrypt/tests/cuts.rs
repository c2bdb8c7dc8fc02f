//! Power cuts at any write, and the volumes that they leave.

use super::*;
use block::layer::{Effect, Fault, Rule, Trigger, WriteCache};
use block::{BlockError, OperationKind};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The operations at which a device is cut off, and the effects.
fn cuts() -> Vec<(OperationKind, Effect)> {
    let torn = [0, 512, 4096, 65_536, 66_048, 130_560];
    let mut cuts = torn
        .map(|keep| (OperationKind::Write, Effect::Torn { keep }))
        .to_vec();
    cuts.push((OperationKind::Flush, Effect::Fail(5)));
    cuts
}

/// Ways in which a disk loses what was not flushed: all of it, nothing, or a
/// half by chance.
const LOSSES: u64 = 4;

/// Does `work` on copies of `before`, cut at every write and every flush, and
/// shows what is left to `check`.
fn cut_everywhere(
    before: &RamDevice,
    work: impl Fn(&dyn BlockDevice) -> Result<(), VolumeError>,
    check: impl Fn(&RamDevice),
) {
    let size = before.geometry().size;
    let mut cut = 0;
    for (operation, effect) in cuts() {
        for n in 1.. {
            let mut done = false;
            for loss in 0..LOSSES {
                let left = enlarged(before, size);
                let cache = WriteCache::new(&left);
                // Nothing comes after a cut.
                let rules = [
                    Rule::on(operation, Trigger::Nth(n), effect),
                    Rule::on(OperationKind::Write, Trigger::From(n + 1), Effect::Fail(5)),
                    Rule::on(OperationKind::Flush, Trigger::From(n + 1), Effect::Fail(5)),
                ];
                match work(&Fault::new(&cache, rules)) {
                    Ok(()) => done = true,
                    Err(error) if is_injected(&error) => cut += 1,
                    Err(error) => panic!("{error}"),
                }
                let mut random = Xoshiro256PlusPlus::seed_from_u64(n << 8 | loss);
                let lost = cache.power_cut(|_| match loss {
                    0 => false,
                    1 => true,
                    _ => random.next_u64() & 1 == 1,
                });
                assert!(!done || lost.unwrap() == 0, "something was not flushed");
                check(&left);
            }
            if done {
                break;
            }
        }
    }
    assert!(cut >= 2 * cuts().len(), "only {cut} cuts");
}

/// Whether the device failed, before or after the first write.
fn is_injected(error: &VolumeError) -> bool {
    match error {
        VolumeError::Block(BlockError::Injected { .. }) => true,
        VolumeError::Rewritten { error } => is_injected(error),
        _ => false,
    }
}

/// Even if only the header that was opened is good.
#[test]
fn a_cut_passphrase_change_leaves_a_header_that_opens() {
    for (place, other) in [(Normal, SIZE - HEADERS_BYTES), (NormalBackup, 0)] {
        for both in [true, false] {
            let (device, data) = full();
            if !both {
                device.write_at(other, &[0; 512]).unwrap();
            }
            cut_everywhere(
                &device,
                |device| change(&mut opens(device, place, OLD).unwrap(), device),
                |left| assert_eq!(rescued(left, NORMAL, &[OLD, NEW]).as_ref(), Some(&data)),
            );
        }
    }
}

#[test]
fn a_cut_growth_leaves_a_header_that_opens() {
    for growth in [4096, 1 << 20] {
        let (small, data) = full();
        let device = enlarged(&small, SIZE + growth);
        cut_everywhere(
            &device,
            |device| grow(&mut opens(device, Normal, OLD).unwrap(), device, NEW),
            |left| {
                let rescued = rescued(left, NORMAL, &[OLD, NEW]).unwrap();
                assert_eq!(rescued[..data.len()], data);
            },
        );
    }
}

/// A flush may fail although its write has arrived. The size in the header tells the caller whether
/// the device may become as small again as it was.
#[test]
fn a_failed_growth_says_whether_the_device_may_shrink() {
    for (flush, is_written) in [(1, false), (2, true)] {
        let (small, _) = full();
        let device = enlarged(&small, SIZE + 4096);
        let mut opened = opens(&device, Normal, OLD).unwrap();
        let before = opened.header.volume_size;
        let rule = Rule::on(OperationKind::Flush, Trigger::Nth(flush), Effect::Fail(5));
        let failing = Fault::new(&device, [rule]);
        grow(&mut opened, &failing, OLD).unwrap_err();
        assert_eq!(opened.header.volume_size != before, is_written, "{flush}");
    }
}

#[test]
fn a_cut_creation_leaves_the_old_volume_or_the_new_one() {
    let (device, _) = full();
    cut_everywhere(
        &device,
        |device| create(device, NEW).map(drop),
        |left| assert!(rescued(left, NORMAL, &[OLD, NEW]).is_some()),
    );
}

#[test]
fn a_cut_creation_of_a_hidden_volume_leaves_the_outer_one() {
    let (device, _) = full();
    let outer = opens(&device, Normal, OLD).unwrap();
    let before = content(&outer, &device);
    cut_everywhere(
        &device,
        |device| hide(device, &outer, 65_536).map(drop),
        |left| assert_eq!(rescued(left, NORMAL, &[OLD]).as_ref(), Some(&before)),
    );
    assert!(rescued(&device, HIDDEN, &[NEW]).is_none());
}

/// Not the caller's fault, and seen before the good header is touched.
#[test]
fn a_device_that_lies_is_found_out() {
    for effect in [Effect::Lose, Effect::Flip { bit: 99 }] {
        let (device, data) = full();
        let mut opened = opens(&device, Normal, OLD).unwrap();
        let rule = Rule::on(OperationKind::Write, Trigger::From(1), effect);
        let error = change(&mut opened, &Fault::new(&device, [rule]));
        let Err(VolumeError::Rewritten { error }) = error else {
            panic!("{error:?}");
        };
        assert!(matches!(*error, VolumeError::Unverified { .. }));
        assert_eq!(rescued(&device, NORMAL, &[OLD]), Some(data));
    }
}
