//! How numbers and names are written: units, digits, words.

use crate::{ciphers, kdf, sweep};
use lab::record::{Bottleneck, Interval, NoiseVerdict, Run, Tier, Trial, Verdict};
use lab::stats::Looks;

/// An interval that is wider says nothing in per cent.
const WIDE: f64 = 0.5;

/// The sign for a value that was not measured.
pub(crate) const UNKNOWN: &str = "–";

/// `value` with about three digits, thousands grouped; huge and tiny values
/// in powers of ten.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        UNKNOWN.to_owned()
    } else if size == 0.0 {
        "0".to_owned()
    } else if !(0.005..1e9).contains(&size) {
        format!("{value:.1e}")
    } else if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        grouped(&format!("{value:.0}"))
    }
}

/// `digits` in groups of three.
pub(crate) fn grouped(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("-", rest));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds in the unit that suits; zero and below were not measured.
pub(crate) fn time(us: Option<f64>) -> String {
    us.map_or_else(|| UNKNOWN.to_owned(), duration_us)
}

/// The size of requests.
pub(crate) fn size(size: Option<u64>) -> String {
    size.map_or_else(|| UNKNOWN.to_owned(), bytes)
}

pub(crate) fn duration_us(us: f64) -> String {
    match us {
        us if !us.is_finite() || us <= 0.0 => UNKNOWN.to_owned(),
        us if us < 0.9995 => format!("{} ns", number(us * 1e3)),
        us if us < 999.5 => format!("{} µs", number(us)),
        us if us < 999.5e3 => format!("{} ms", number(us / 1e3)),
        us => format!("{} s", number(us / 1e6)),
    }
}

/// A round number of microseconds, without needless zeros: `50 µs`.
pub(crate) fn round_duration(us: f64) -> String {
    let text = duration_us(us);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') && !number.contains('e') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
}

/// Bytes in a binary unit if they are a power of two: `4 KiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    UNITS.iter().find(|(unit, _)| bytes >= *unit).map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| {
            let value = bytes as f64 / *unit as f64;
            if value.fract() == 0.0 {
                format!("{value:.0} {name}")
            } else {
                format!("{value:.1} {name}")
            }
        },
    )
}

/// A share of 1 in per cent, whole.
pub(crate) fn share(share: Option<f64>) -> String {
    match share {
        Some(share) if share.is_finite() => match share * 100.0 {
            percent if percent > 0.0 && percent < 0.5 => "<1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        },
        _ => UNKNOWN.to_owned(),
    }
}

/// The rate that people compare for this cell, and its unit: requests a second
/// for small blocks, 10⁶ bytes a second otherwise and for a bare cipher.
pub(crate) fn rate(trial: &Trial) -> (Interval, &'static str) {
    const SMALL: u64 = 64 << 10;
    if trial.tier == Tier::Cipher || trial.block_bytes.is_none_or(|bytes| bytes >= SMALL) {
        (trial.throughput_mb_s, "MB/s")
    } else {
        (trial.iops, "IOPS")
    }
}

/// A value with its unit; `–` if the value is not a finite number.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    if value.is_finite() {
        format!("{} {unit}", number(value))
    } else {
        UNKNOWN.to_owned()
    }
}

/// A median with its interval: `512 (498–530)`. One value has none.
pub(crate) fn interval(interval: Interval) -> String {
    if interval.n == 1 {
        return number(interval.median);
    }
    format!(
        "{} ({}–{})",
        number(interval.median),
        number(interval.low),
        number(interval.high)
    )
}

/// A ratio with three decimals and its interval and n.
pub(crate) fn ratio(ratio: Interval) -> String {
    if !finite(ratio) {
        return UNKNOWN.to_owned();
    }
    format!(
        "{:.3} ({:.3}–{:.3}, n {})",
        ratio.median, ratio.low, ratio.high, ratio.n
    )
}

/// The quantity in which the ratio of two speeds is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Rates: 300 after 400 is slower by 25 %.
    Rates,
    /// Times: 3 s after 2 s is 50 % longer.
    Times,
}

impl Quantity {
    /// What the cells of a trial show.
    pub(crate) fn of(trial: &Trial) -> Self {
        match trial.tier {
            Tier::Fs => Self::Times,
            Tier::Block | Tier::Cipher => Self::Rates,
        }
    }

    fn less(self, ratio: f64) -> f64 {
        match self {
            Self::Rates => 1.0 - ratio,
            Self::Times => 1.0 / ratio - 1.0,
        }
    }

    fn in_words(self, verdict: Verdict, percent: &str) -> String {
        match (self, verdict) {
            (Self::Rates, Verdict::Slower) => format!("slower by {percent} %"),
            (Self::Rates, _) => format!("faster by {percent} %"),
            (Self::Times, Verdict::Slower) => format!("{percent} % longer"),
            (Self::Times, _) => format!("{percent} % shorter"),
        }
    }

    /// The ratio of two speeds and its verdict: `slower by 12.3 % (10.1–14.0)`.
    pub(crate) fn difference(self, ratio: Interval, verdict: Verdict) -> String {
        if !finite(ratio) {
            return UNKNOWN.to_owned();
        }
        let by = |ratio: f64| percent(self.less(ratio).abs() * 100.0);
        let certain = |ends: [f64; 2]| {
            let [first, last] = ends.map(|end| percent(self.less(end) * sign(verdict) * 100.0));
            let words = self.in_words(verdict, &by(ratio.median));
            format!("{words} ({first}–{last})")
        };
        match verdict {
            Verdict::Slower => certain([ratio.high, ratio.low]),
            Verdict::Faster => certain([ratio.low, ratio.high]),
            Verdict::NotDistinguishable if spread(ratio) > WIDE => {
                "not distinguishable (too wide)".to_owned()
            }
            Verdict::NotDistinguishable => {
                format!(
                    "not distinguishable (±{} %)",
                    percent(spread(ratio) * 100.0)
                )
            }
            Verdict::TooFew if ratio.median == 1.0 => "no difference (too few)".to_owned(),
            Verdict::TooFew => {
                let way = match ratio.median < 1.0 {
                    true => Verdict::Slower,
                    false => Verdict::Faster,
                };
                let words = self.in_words(way, &by(ratio.median));
                format!("{words} (too few)")
            }
        }
    }

    /// The same in few words, for a label next to a drawn interval.
    pub(crate) fn difference_in_short(self, ratio: Interval, verdict: Verdict) -> String {
        let text = self.difference(ratio, verdict);
        if verdict == Verdict::TooFew {
            return text;
        }
        text.split_once(" (")
            .map_or_else(|| text.clone(), |(short, _)| short.to_owned())
    }
}

/// The sign of a loss of speed.
fn sign(verdict: Verdict) -> f64 {
    if verdict == Verdict::Faster {
        -1.0
    } else {
        1.0
    }
}

/// The cost of a trial in words.
pub(crate) fn overhead(trial: &Trial) -> String {
    let cost = trial.overhead.as_ref();
    cost.map_or_else(String::new, |cost| {
        Quantity::of(trial).difference(cost.ratio, cost.verdict)
    })
}

/// A median with the larger arm of its interval: `12,409 IOPS ±1.9 %`. One value has none.
pub(crate) fn rate_in_short(trial: &Trial) -> String {
    let (rate, unit) = rate(trial);
    let arm = (rate.high - rate.median).max(rate.median - rate.low) / rate.median * 100.0;
    let arm = match arm.is_finite() && finite(rate) && rate.n > 1 {
        true => format!(" ±{} %", percent(arm)),
        false => String::new(),
    };
    format!("{}{arm}", with_unit(rate.median, unit))
}

/// Time of an operation on a file system, microseconds: the median that tables
/// print, and the interval of all repetitions, whenever they ended.
pub(crate) fn time_us(trial: &Trial) -> Option<Interval> {
    let us: Vec<f64> = trial.samples_s().iter().map(|s| s * 1e6).collect();
    // A record does not say whether how it went on decided when it ended.
    let interval = Looks::Always.interval(&us)?;
    Some(Interval {
        median: trial.median_us()?,
        ..interval
    })
}

/// How far the farther end of the interval lies from 1.
pub(crate) fn spread(ratio: Interval) -> f64 {
    (1.0 - ratio.low).abs().max((ratio.high - 1.0).abs())
}

pub(crate) fn percent(percent: f64) -> String {
    if percent.abs() < 999.95 {
        format!("{percent:.1}")
    } else {
        number(percent)
    }
}

pub(crate) fn finite(interval: Interval) -> bool {
    interval.median.is_finite() && interval.low.is_finite() && interval.high.is_finite()
}

/// The share of the driving threads' time that the cipher took; `None` when unknown.
pub(crate) fn crypto_share(trial: &Trial) -> Option<f64> {
    let total = trial.thread_seconds()?;
    let crypto = trial.time_s.crypto?;
    (total > 0.0 && crypto.is_finite()).then_some(crypto / total)
}

/// The machine in one line.
pub(crate) fn machine(run: &Run) -> String {
    let host = &run.host;
    let clock = host
        .clock_hz
        .filter(|clock| clock.is_finite() && *clock > 0.0)
        .map(|clock| format!("{:.2} GHz", clock / 1e9));
    let parts = [
        Some(host.cpu.clone()),
        Some(match host.cores {
            1 => "1 core".to_owned(),
            cores => format!("{cores} cores"),
        })
        .filter(|_| host.cores > 0),
        clock,
        Some(host.os.clone()),
        Some(host.kernel.clone()),
        host.hypervisor.as_ref().map(|name| format!("in {name}")),
    ];
    joined(parts.into_iter().flatten()).unwrap_or_else(|| "unknown machine".to_owned())
}

/// The device of a trial and the path of its requests, in one line.
fn device(trial: &Trial) -> String {
    let device = &trial.device;
    let path = match &device.filesystem {
        Some(filesystem) => format!("{} on {filesystem}", device.path_kind),
        None => device.path_kind.clone(),
    };
    let cache = match device.cache.as_str() {
        "direct" => "around the page cache (direct)".to_owned(),
        "buffered" => "through the page cache (buffered)".to_owned(),
        other => other.to_owned(),
    };
    let kind = match &device.model {
        Some(model) => format!("{} {model}", device.kind),
        None => device.kind.clone(),
    };
    // A queue is the default driver before a simulated drive.
    let driver = match device.driver.as_deref() {
        None | Some("queue") => String::new(),
        Some(driver) => format!("with the driver {driver}"),
    };
    let parts = [kind, path, cache, device.engine.clone(), driver];
    joined(parts.into_iter()).unwrap_or_else(|| "unknown device".to_owned())
}

/// The devices of a run, each once; they are usually one.
pub(crate) fn devices(run: &Run) -> Vec<String> {
    let mut devices = Vec::new();
    for device in run.trials.iter().map(device) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    devices
}

/// The bottleneck in one word; a dash if none stands out.
pub(crate) fn limit(trial: &Trial) -> &'static str {
    match trial.bottleneck {
        Bottleneck::Cipher => "cipher",
        Bottleneck::Device => "device",
        Bottleneck::Copy => "copy",
        Bottleneck::Syscall => "syscall",
        Bottleneck::Unknown => UNKNOWN,
    }
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.filter(|part| !part.trim().is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// `text` with a capital letter, as a sentence of its own after a colon.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The noise floor in one line, without a heading.
pub(crate) fn noise(run: &Run) -> String {
    let verdict = match run.noise.verdict {
        NoiseVerdict::Quiet => "quiet",
        NoiseVerdict::Noisy => "NOISY: small differences below mean nothing",
        NoiseVerdict::Unknown => "unknown",
    };
    match run.noise.aa_ratio {
        Some(aa) if ciphers::is_bare(run) => {
            format!("the first cipher against itself {}: {verdict}", ratio(aa))
        }
        Some(aa) if kdf::is_kdf(run) => {
            format!(
                "the first derivation against itself {}: {verdict}",
                ratio(aa)
            )
        }
        Some(aa) => format!("plain against itself {}: {verdict}", ratio(aa)),
        None if sweep::is_sweep(run) => {
            "none, because time is virtual; the intervals show the spread between seeds".to_owned()
        }
        None => "no A/A pair was measured, so no difference below can be trusted".to_owned(),
    }
}

/// The cipher as people call it: `AES-256 XTS`, `AES-128 CBC (elephant)`.
pub(crate) fn cipher(notation: &str, key_bits: Option<u32>) -> String {
    if let Some((stream, _)) = notation
        .split_once("-adiantum")
        .and_then(|(ciphers, _)| ciphers.split_once(','))
    {
        return format!("Adiantum ({})", cipher_name(stream));
    }
    let words: Vec<&str> = notation.split('-').collect();
    let is_mode = |word: &&&str| matches!(**word, "xts" | "cbc" | "lrw" | "ctr" | "ecb" | "hctr2");
    let ciphers = words.iter().take_while(|word| !is_mode(word)).count();
    let names: Vec<String> = words[..ciphers.max(1)]
        .iter()
        .map(|word| cipher_name(word))
        .collect();
    let name = names.join("-");
    let mode = words.get(ciphers).copied().unwrap_or_default();
    let iv = words.get(ciphers + 1).copied().unwrap_or_default();
    // cryptsetup counts both halves of an XTS key; that of a cascade says little.
    let bits = match mode {
        _ if ciphers > 1 => None,
        "xts" => key_bits.map(|bits| bits / 2),
        // Nor does the key of its tweaks say anything of the cipher's.
        "lrw" => key_bits.map(|bits| bits.saturating_sub(128)),
        // Half is the diffuser's.
        _ if iv == "elephant" => key_bits.map(|bits| bits / 2),
        _ => key_bits,
    };
    let bits = bits.map_or_else(String::new, |bits| format!("-{bits}"));
    let mode = match mode {
        "" => String::new(),
        mode => format!(" {}", mode.to_uppercase()),
    };
    // These do more to a sector than number it.
    let iv = match iv {
        "eboiv" | "elephant" | "lmk" | "tcw" => format!(" ({iv})"),
        // fscrypt's cipher of names.
        "hctr2" => " (names HCTR2)".to_owned(),
        _ => String::new(),
    };
    format!("{name}{bits}{mode}{iv}")
}

fn cipher_name(word: &str) -> String {
    match word {
        "aes" | "sm4" | "cast5" | "cast6" | "des" | "idea" | "seed" | "aria" | "tea" | "xtea"
        | "gcm" => word.to_uppercase(),
        "des3_ede" => "3DES".to_owned(),
        "xchacha12" => "XChaCha12".to_owned(),
        "xchacha20" => "XChaCha20".to_owned(),
        _ => {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().chain(letters).collect()
            })
        }
    }
}

/// Text from a record on one line, without what would steer a terminal or
/// turn the text around it.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect()
}

/// True for control characters and for those that change the direction of text.
pub(crate) fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size() {
        for (value, text) in [
            (0.0, "0"),
            (0.004, "4.0e-3"),
            (1e-12, "1.0e-12"),
            (0.5, "0.50"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.6, "1,000"),
            (12_345.6, "12,346"),
            (999_999_999.0, "999,999,999"),
            (1e9, "1.0e9"),
            (1e300, "1.0e300"),
            (-1234.0, "-1,234"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn durations_and_sizes() {
        for (us, text) in [
            (0.0, "–"),
            (-1.0, "–"),
            (0.123, "123 ns"),
            (1.0, "1.00 µs"),
            (999.6, "1.00 ms"),
            (1e6, "1.00 s"),
            (1e15, "1.0e9 s"),
        ] {
            assert_eq!(duration_us(us), text);
        }
        for (count, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (4096, "4 KiB"),
            (1 << 20, "1 MiB"),
            (1_500_000, "1.4 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn ciphers_as_people_call_them() {
        for (notation, bits, text) in [
            ("aes-xts-plain64", Some(512), "AES-256 XTS"),
            ("aes-xts-plain64", Some(256), "AES-128 XTS"),
            ("serpent-cbc-essiv:sha256", Some(256), "Serpent-256 CBC"),
            ("des3_ede-cbc-plain64", None, "3DES CBC"),
            ("des-cbc-plain64", Some(64), "DES-64 CBC"),
            ("aes-cbc-eboiv", Some(256), "AES-256 CBC (eboiv)"),
            ("aes-cbc-elephant", Some(512), "AES-256 CBC (elephant)"),
            ("aes-lrw-benbi", Some(384), "AES-256 LRW"),
            (
                "xchacha12,aes-adiantum-plain64",
                Some(256),
                "Adiantum (XChaCha12)",
            ),
            ("aes-twofish-serpent", Some(1536), "AES-Twofish-Serpent"),
            (
                "aes-twofish-serpent-xts-plain64",
                Some(1536),
                "AES-Twofish-Serpent XTS",
            ),
            ("aes-hctr2-plain64", Some(256), "AES-256 HCTR2"),
            ("", None, ""),
            ("-", None, "-"),
            ("œuvre", None, "Œuvre"),
        ] {
            assert_eq!(cipher(notation, bits), text);
        }
    }

    #[test]
    fn differences_in_words() {
        let ratio = |median, low, high| Interval {
            median,
            low,
            high,
            n: 10,
        };
        for (ratio, verdict, text) in [
            (
                ratio(0.877, 0.86, 0.899),
                Verdict::Slower,
                "slower by 12.3 % (10.1–14.0)",
            ),
            (
                ratio(1.05, 1.02, 1.08),
                Verdict::Faster,
                "faster by 5.0 % (2.0–8.0)",
            ),
            (
                ratio(1.0, 0.991, 1.012),
                Verdict::NotDistinguishable,
                "not distinguishable (±1.2 %)",
            ),
            (
                ratio(900.0, 800.0, 1e12),
                Verdict::Faster,
                "faster by 89,900 % (79,900–1.0e14)",
            ),
            (
                Interval {
                    n: 1,
                    ..ratio(0.036, 0.036, 0.036)
                },
                Verdict::TooFew,
                "slower by 96.4 % (too few)",
            ),
            (
                ratio(1.0, 1.0, 1.0),
                Verdict::TooFew,
                "no difference (too few)",
            ),
            (ratio(f64::NAN, 0.0, 0.0), Verdict::Slower, "–"),
        ] {
            assert_eq!(Quantity::Rates.difference(ratio, verdict), text);
        }
        for (ratio, verdict, text) in [
            (
                ratio(2.0 / 3.0, 0.6, 0.8),
                Verdict::Slower,
                "50.0 % longer (25.0–66.7)",
            ),
            (
                ratio(1.5, 1.25, 2.0),
                Verdict::Faster,
                "33.3 % shorter (20.0–50.0)",
            ),
            (
                ratio(0.5, 0.5, 0.5),
                Verdict::TooFew,
                "100.0 % longer (too few)",
            ),
            (
                ratio(1.0, 0.991, 1.012),
                Verdict::NotDistinguishable,
                "not distinguishable (±1.2 %)",
            ),
        ] {
            assert_eq!(Quantity::Times.difference(ratio, verdict), text);
        }
    }
}
