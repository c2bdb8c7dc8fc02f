//! A drive with invented lives and a hostile name.

use cryptmark_report::lifetime::{Leak, Life, Lifetime, Moment, SCHEMA, Setup};

pub fn lifetime() -> Lifetime {
    let life = |setup, amplification: f64, years: f64| Life {
        setup,
        moments: (1..=12)
            .map(|number| Moment {
                years: 0.001 * f64::from(1 << number),
                write_amplification: 1.0 + (amplification - 1.0) * f64::from(number) / 12.0,
                write_mb_s: 300.0 / (1.0 + (amplification - 1.0) * f64::from(number) / 12.0),
            })
            .take_while(|moment| moment.years < 1.5)
            .collect(),
        steady_after: Some(1.024),
        write_amplification: amplification,
        lifetime_years: years,
        terabytes_written: years * 7.305,
        erases: vec![(9, 10), (10, 60), (11, 20), (40, 10)],
        leak: (setup != Setup::Plain).then(|| Leak {
            unused: if setup == Setup::Passed { 0.2 } else { 0.0 },
            map: (0..64).map(|cell| f64::from(cell % 8) / 7.0).collect(),
            right: 0.8,
        }),
    };
    Lifetime {
        schema: SCHEMA,
        device: "mine.toml".to_owned(),
        title: "<script>alert(1)</script> of 128 GB".to_owned(),
        daily_bytes: 20_000_000_000,
        fill: 0.8,
        overwrites: 0.2,
        unpartitioned: 0.1,
        compression: 0.5,
        years: 3.0,
        seed: 1,
        setups: vec![
            life(Setup::Plain, 0.6, 120.0),
            life(Setup::Passed, 1.2, 50.0),
            life(Setup::Blocked, 4.5, 12.0),
            life(Setup::Filled, 4.6, 11.9),
            life(Setup::Unpartitioned, 2.0, 28.0),
        ],
    }
}
