//! Lives of a small drive, in which the setups keep their order.

extern crate cryptmark_drive as drive;

use drive::ftl::Policy;
use drive::lifetime::{BLOCKS, Life, Lived, Setup};
use drive::preset::Preset;
use drive::ssd::Ssd;
use std::ops::ControlFlow;

fn small() -> Ssd {
    let toml = Preset::toml("mlc-128g").unwrap();
    match Preset::parse(&toml.replace("\"128 GB\"", "\"4 GB\"")) {
        Ok(Preset::Ssd(ssd)) => ssd,
        other => panic!("{other:?}"),
    }
}

fn live(ssd: &Ssd, setup: Setup, change: impl Fn(&mut Life)) -> Lived {
    let mut life = Life {
        ssd,
        blocks: BLOCKS,
        policy: Policy::Greedy,
        daily: 1_000_000_000,
        fill: 0.8,
        overwrites: 0.2,
        years: 3.0,
        compression: 1.0,
        seed: 1,
    };
    change(&mut life);
    let lived = life.live(setup, &mut |_| ControlFlow::Continue(()));
    lived.unwrap().expect("nobody ends it")
}

#[test]
fn discards_and_spare_room_pay() {
    let ssd = small();
    let of = |setup| live(&ssd, setup, |_| ());
    let plain = of(Setup::Plain);
    let passed = of(Setup::Passed);
    let blocked = of(Setup::Blocked);
    let filled = of(Setup::Filled);
    let spared = of(Setup::Unpartitioned { left: 0.2 });
    // Without compression, plain and encrypted data are the same to the flash.
    assert_eq!(plain.moments, passed.moments);
    assert!(passed.write_amplification < spared.write_amplification);
    assert!(spared.write_amplification < filled.write_amplification);
    assert!(blocked.write_amplification <= filled.write_amplification * 1.01);
    assert!(passed.lifetime_years > filled.lifetime_years);
    // Nothing is seen of a plain drive from outside of it.
    assert_eq!(plain.leak, None);
    let seen = |lived: &Lived| lived.leak.clone().expect("it is encrypted");
    assert_eq!(seen(&filled).unused, 0.0);
    assert!((seen(&passed).unused - 0.2).abs() < 0.01);
    assert!((seen(&passed).right - 1.0).abs() < 1e-9);
    assert!((seen(&spared).unused - 0.2).abs() < 0.01);
}

/// A drive that compresses gains room and writes less, unless it is encrypted.
#[test]
fn encryption_defeats_compression() {
    let ssd = small();
    let half = |life: &mut Life| life.compression = 0.5;
    let plain = live(&ssd, Setup::Plain, half);
    assert!(
        plain.write_amplification < 0.6,
        "{}",
        plain.write_amplification
    );
    let passed = live(&ssd, Setup::Passed, half);
    assert!(passed.write_amplification > 1.0);
}

/// All that is written goes into blocks, and wears them.
#[test]
fn wear_is_what_was_written() {
    let ssd = small();
    let lived = live(&ssd, Setup::Filled, |life| life.years = 0.05);
    assert_eq!(lived.steady_after, None);
    let erased: u32 = lived
        .erases
        .iter()
        .map(|(times, blocks)| times * blocks)
        .sum();
    // 18 days of 1 GB, a drive filled once with noise and once with files.
    let written = 18.26e9 * lived.write_amplification + 4e9 * 0.8;
    let worn = f64::from(erased) * 2_097_152.0;
    assert!((worn / written - 1.0).abs() < 0.1, "{worn} {written}");
    // 3000 cycles of 4.3 GB, at so much a day.
    let endured = 3000.0 * 4e9 * 1.0737;
    let years = endured / (lived.write_amplification * 1e9 * 365.25);
    assert!(
        (lived.lifetime_years / years - 1.0).abs() < 0.2,
        "{lived:?}"
    );
}

/// How long a drive lasts is the same whatever years were asked for, and however little a day.
#[test]
fn a_short_look_says_the_same_of_a_long_life() {
    let ssd = small();
    let years = |years: f64, daily: u64| {
        let lived = live(&ssd, Setup::Filled, |life| {
            life.years = years;
            life.daily = daily;
        });
        let last = lived.moments.last().unwrap().years;
        assert!(last < years * 2.0, "{years} {last}");
        lived.lifetime_years * daily as f64
    };
    let long = years(3.0, 1_000_000_000);
    for (short, daily) in [
        (0.3, 1_000_000_000),
        (0.001, 1_000_000_000),
        (1.0, 1_000_000),
    ] {
        let found = years(short, daily) / long;
        assert!((found - 1.0).abs() < 0.1, "{short} {daily}: {found}");
    }
}

#[test]
fn impossible_lives() {
    let ssd = small();
    let refused = |setup, change: &dyn Fn(&mut Life)| {
        let mut life = Life {
            ssd: &ssd,
            blocks: BLOCKS,
            policy: Policy::Greedy,
            daily: 1,
            fill: 0.8,
            overwrites: 0.0,
            years: 1.0,
            compression: 1.0,
            seed: 1,
        };
        change(&mut life);
        let outcome = life.live(setup, &mut |_| ControlFlow::Break(()));
        outcome.expect_err("it is impossible").to_string()
    };
    assert!(refused(Setup::Plain, &|life| life.fill = 0.0).contains("fill"));
    assert!(refused(Setup::Plain, &|life| life.fill = 1.0).contains("fill"));
    assert!(refused(Setup::Plain, &|life| life.daily = 0).contains("daily"));
    assert!(refused(Setup::Plain, &|life| life.daily = u64::MAX).contains("write in a day"));
    assert!(refused(Setup::Plain, &|life| life.years = f64::NAN).contains("years"));
    assert!(refused(Setup::Plain, &|life| life.overwrites = 1.0).contains("overwrites"));
    assert!(refused(Setup::Plain, &|life| life.compression = 0.0).contains("compression"));
    assert!(refused(Setup::Unpartitioned { left: 1.0 }, &|_| ()).contains("unpartitioned"));
}
