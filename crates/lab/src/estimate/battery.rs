//! [`Battery`]: the hours that encryption takes from the battery of another machine.

use super::{Cost, Span};
use serde::{Deserialize, Serialize};

/// Seconds in a day.
const DAY: f64 = 86_400.0;

/// Seconds in an hour, which are also the joules in a watt-hour.
const HOUR: f64 = 3600.0;

/// The battery of a machine, and the daily work of the ciphers there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Battery {
    /// Its capacity, watt-hours.
    pub watt_hours: f64,
    /// Mean power of the whole machine without encryption, watts.
    pub average_watts: f64,
    /// Additional power while a core encrypts, watts.
    pub active_watts: f64,
    /// Bytes that are read and decrypted a day, 10⁶.
    #[serde(default)]
    pub daily_read_mb: f64,
    /// Bytes that are encrypted and written a day, 10⁶.
    #[serde(default)]
    pub daily_write_mb: f64,
    /// By how much `active_watts` may be wrong, per cent.
    #[serde(default)]
    pub spread: f64,
}

/// The share of a battery that a cipher takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drain {
    /// dm-crypt notation.
    pub cipher: String,
    /// Bits of the key.
    pub key_bits: u32,
    /// Time that a core encrypts and decrypts each day, seconds. A core has 86,400.
    pub seconds_a_day: Span,
    /// Energy of that, watt-hours a day.
    pub watt_hours_a_day: Span,
    /// By how much sooner a full battery is empty, hours.
    pub hours_lost: Span,
}

impl Battery {
    /// Hours that a full battery lasts without encryption.
    pub fn hours(&self) -> f64 {
        self.watt_hours / self.average_watts
    }

    /// The share that each cipher of `costs` takes on a processor of `hertz`.
    pub fn drains(&self, costs: &[Cost], hertz: f64) -> Vec<Drain> {
        costs.iter().map(|cost| self.drain(cost, hertz)).collect()
    }

    fn drain(&self, cost: &Cost, hertz: f64) -> Drain {
        let decrypting = cost.decrypt.times(self.daily_read_mb * 1e6 / hertz);
        let encrypting = cost.encrypt.times(self.daily_write_mb * 1e6 / hertz);
        let seconds = decrypting.plus(encrypting);
        let watts = Span::within(self.active_watts, self.spread);
        let watt_hours = |seconds: f64, watts: f64| seconds * watts / HOUR;
        let energy = Span {
            expected: watt_hours(seconds.expected, watts.expected),
            low: watt_hours(seconds.low, watts.low),
            high: watt_hours(seconds.high, watts.high),
        };
        let lost = |energy: f64| {
            let watts = self.average_watts + energy * HOUR / DAY;
            self.hours() - self.watt_hours / watts
        };
        Drain {
            cipher: cost.cipher.clone(),
            key_bits: cost.key_bits,
            seconds_a_day: seconds,
            watt_hours_a_day: energy,
            hours_lost: Span {
                expected: lost(energy.expected),
                low: lost(energy.low),
                high: lost(energy.high),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(encrypt: f64, decrypt: f64) -> Cost {
        Cost {
            cipher: "aes-xts-plain64".to_owned(),
            key_bits: 512,
            encrypt: Span::within(encrypt, 10.0),
            decrypt: Span::within(decrypt, 10.0),
            measured: false,
        }
    }

    const PHONE: Battery = Battery {
        watt_hours: 12.0,
        average_watts: 0.5,
        active_watts: 2.0,
        daily_read_mb: 9000.0,
        daily_write_mb: 3000.0,
        spread: 20.0,
    };

    /// 9 GB at 20 and 3 GB at 40 cycles a byte are 300 s at 1 GHz, so 1/6 Wh a day.
    #[test]
    fn a_phone_loses_what_the_formula_says() {
        let [drain] = &PHONE.drains(&[cost(40.0, 20.0)], 1e9)[..] else {
            panic!("there is one cost");
        };
        assert!((PHONE.hours() - 24.0).abs() < 1e-12);
        assert!((drain.seconds_a_day.expected - 300.0).abs() < 1e-9);
        assert!((drain.watt_hours_a_day.expected - 1.0 / 6.0).abs() < 1e-9);
        // 6.9 mW more than 0.5 W.
        let lost = 24.0 - 12.0 / (0.5 + 1.0 / 144.0);
        assert!((drain.hours_lost.expected - lost).abs() < 1e-9);
        // 10 % fewer cycles at 20 % fewer watts, and 10 % and 20 % more.
        assert!((drain.watt_hours_a_day.low - 0.72 / 6.0).abs() < 1e-9);
        assert!((drain.watt_hours_a_day.high - 1.32 / 6.0).abs() < 1e-9);
        let Span {
            expected,
            low,
            high,
        } = drain.hours_lost;
        assert!(low < expected && expected < high);
    }

    #[test]
    fn nothing_that_is_moved_takes_nothing() {
        let idle = Battery {
            daily_read_mb: 0.0,
            daily_write_mb: 0.0,
            ..PHONE
        };
        let drains = idle.drains(&[cost(40.0, 20.0)], 1e9);
        assert_eq!(drains[0].hours_lost, Span::default());
    }
}
