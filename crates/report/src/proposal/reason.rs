//! Why each part of a set-up is as it is, and what else would cost.

use super::candidate::Candidate;
use super::flags::FLAGS_PLAN;
use super::{Alternative, Beside, Choice, Format, Limit, Machine, Rate, Setup};
use crate::figure;
use lab::record::{Interval, Verdict};

/// The expected cost for a ratio of rates: `12.3 % (10.1 to 14.0)`, or `at most 14.0 %` if the cost
/// may be zero.
pub(super) fn cost(ratio: Interval) -> String {
    let loss = |ratio: f64| (1.0 - ratio) * 100.0;
    let (least, most) = (loss(ratio.high), loss(ratio.low));
    match (least >= 0.05, most >= 0.05) {
        (true, _) => format!("{:.1} % ({least:.1} to {most:.1})", loss(ratio.median)),
        (false, true) => format!("at most {most:.1} %"),
        (false, false) => "nothing".to_owned(),
    }
}

/// Whether discards go through: flash that takes them gains by it.
pub(super) fn passes_discards(machine: &Machine) -> bool {
    machine.flash != Some(false) && machine.discards == Some(true)
}

fn rate_of<'a>(machine: &'a Machine, of: &Candidate<'_>) -> Option<&'a Rate> {
    let is_its = |rate: &&Rate| {
        (rate.cipher.as_str(), rate.key_bits, rate.sector_bytes)
            == (of.cipher, of.key_bits, of.sector_bytes)
    };
    machine.rates.iter().find(is_its)
}

fn other_key<'a>(machine: &'a Machine, chosen: &Candidate<'_>) -> Option<&'a Beside> {
    let mut beside = machine.beside.iter();
    beside.find(|other| other.key_bits != chosen.key_bits)
}

fn other_sector<'a>(machine: &'a Machine, chosen: &Candidate<'_>) -> Option<&'a Beside> {
    let mut beside = machine.beside.iter();
    beside.find(|other| other.sector_bytes != chosen.sector_bytes)
}

/// `24 % faster in memory (22 to 26)`.
fn in_memory(beside: &Beside) -> String {
    let Interval {
        median, low, high, ..
    } = beside.ratio;
    let loss = |ratio: f64| (1.0 - ratio).abs() * 100.0;
    let (word, ends) = match beside.verdict {
        Verdict::Slower => ("slower", [high, low]),
        Verdict::Faster => ("faster", [low, high]),
        Verdict::NotDistinguishable | Verdict::TooFew => return "as fast in memory".to_owned(),
    };
    let [least, most] = ends.map(loss);
    format!(
        "{:.0} % {word} in memory ({least:.0} to {most:.0})",
        loss(median)
    )
}

/// `1,734 MB/s a core (1,700 to 1,760)`, or what was given.
fn a_core(rate: &Rate) -> String {
    let mb_s = figure::number(rate.mb_s);
    match rate.interval {
        None => format!("{mb_s} MB/s a core (given)"),
        Some(Interval { low, high, .. }) => {
            let [low, high] = [low, high].map(figure::number);
            format!("{mb_s} MB/s a core ({low} to {high})")
        }
    }
}

/// Every part of the set-up.
pub(super) fn choices(
    machine: &Machine,
    setup: &Setup,
    candidates: &[Candidate<'_>],
    chosen: &Candidate<'_>,
    limit: Limit,
) -> Vec<Choice> {
    let choice = |what, value: String, reason: String| Choice {
        what,
        value,
        reason,
    };
    let derivation = match (setup.pbkdf_memory, setup.pbkdf_parallel) {
        (Some(memory), Some(lanes)) => format!(
            "{}, {} ms, up to {}, {lanes} {}",
            setup.pbkdf,
            setup.iter_time,
            match memory {
                1024.. => format!("{} MiB", memory / 1024),
                _ => format!("{memory} KiB"),
            },
            if lanes == 1 { "lane" } else { "lanes" }
        ),
        _ => format!("{}, {} ms", setup.pbkdf, setup.iter_time),
    };
    let flags = match setup.flags.is_empty() {
        true => "none".to_owned(),
        false => setup.flags.join(", "),
    };
    vec![
        choice(
            "cipher",
            setup.cipher.clone(),
            cipher(machine, candidates, chosen, limit),
        ),
        choice(
            "mode",
            mode_name(chosen.cipher).to_owned(),
            mode(chosen.cipher),
        ),
        choice(
            "key size",
            format!("{} bits", setup.key_size),
            key_size(machine, chosen),
        ),
        choice(
            "sector size",
            format!("{} bytes", setup.sector_size),
            sector_size(machine, setup, chosen),
        ),
        choice("key derivation", derivation, key_derivation(setup)),
        choice(
            "TRIM",
            match setup.allow_discards {
                true => "passed".to_owned(),
                false => "blocked".to_owned(),
            },
            trim(machine, setup),
        ),
        choice("dm-crypt flags", flags, why_flags(machine)),
        choice(
            "format",
            setup.format.name().to_owned(),
            format_reason(setup),
        ),
    ]
}

fn cipher(
    machine: &Machine,
    candidates: &[Candidate<'_>],
    chosen: &Candidate<'_>,
    limit: Limit,
) -> String {
    let rate = rate_of(machine, chosen);
    let rate = rate.map_or_else(String::new, |rate| format!(" at {}", a_core(rate)));
    let others = || {
        candidates
            .iter()
            .filter(|other| !std::ptr::eq(*other, chosen))
    };
    if others().next().is_none() {
        return format!("No other cipher was compared; it encrypts{rate}.");
    }
    // The candidate before it in the order of preference, or else the most expensive one.
    let preferred = candidates
        .first()
        .filter(|first| !std::ptr::eq(*first, chosen));
    let by_cost = |a: &&Candidate<'_>, b: &&Candidate<'_>| {
        let worst = |of: &Candidate<'_>| of.setup.worst().1.median;
        worst(a).total_cmp(&worst(b))
    };
    match (limit, preferred.or_else(|| others().min_by(by_cost))) {
        (Limit::Disk, _) | (_, None) => format!(
            "No cipher costs more than 5 % in any workload here; this one is the most studied and \
             most used, and encrypts{rate}."
        ),
        (_, Some(other)) => format!(
            "It encrypts{rate} and costs {}; {} costs {}.",
            chosen.cost(),
            other.name(),
            other.cost()
        ),
    }
}

fn mode_name(cipher: &str) -> &'static str {
    match cipher {
        _ if cipher.contains("-adiantum") => "Adiantum",
        _ if cipher.contains("-xts-") => "XTS",
        _ if cipher.contains("-cbc-") => "CBC",
        _ if cipher.contains("-hctr2") => "HCTR2",
        _ if cipher.contains("-lrw-") => "LRW",
        _ => "other",
    }
}

fn mode(cipher: &str) -> String {
    match mode_name(cipher) {
        "Adiantum" | "HCTR2" => {
            "The whole sector is one block, so an observer can't see which 16 bytes of it have \
             changed."
        }
        "XTS" => {
            "Each 16-byte block has its own tweak, so blocks are encrypted in parallel; CBC must \
             chain them, and shows where a change begins."
        }
        "CBC" => "You asked for it; XTS encrypts blocks in parallel, and CBC cannot.",
        _ => "You asked for it.",
    }
    .to_owned()
}

fn key_size(machine: &Machine, chosen: &Candidate<'_>) -> String {
    match (other_key(machine, chosen), mode_name(chosen.cipher)) {
        (Some(other), _) => format!(
            "Two keys of 256 bits are far beyond any search; {} bits would be {}, but no faster if \
             the disk is the limit.",
            other.key_bits,
            in_memory(other)
        ),
        (None, "XTS") if chosen.key_bits == 512 => {
            "There are two keys of 256 bits each: one encrypts, the other makes the tweaks."
                .to_owned()
        }
        (None, "XTS") => format!(
            "There are two keys of {} bits each: one encrypts, the other makes the tweaks.",
            chosen.key_bits / 2
        ),
        (None, _) => "It is the full size of the cipher's key.".to_owned(),
    }
}

fn sector_size(machine: &Machine, setup: &Setup, chosen: &Candidate<'_>) -> String {
    let other = other_sector(machine, chosen).map_or_else(String::new, |other| {
        format!("; {} bytes are {}", other.sector_bytes, in_memory(other))
    });
    match (setup.format, machine.physical_block, setup.sector_size) {
        (Format::Luks1, ..) => format!("LUKS1 has no other sector size{other}."),
        (_, Some(physical), size) if physical >= u64::from(size) => format!(
            "The disk writes {physical} bytes atomically, so a power cut leaves no sector half \
             written{other}."
        ),
        (_, Some(physical), _) => format!(
            "You asked for it; the disk writes {physical} bytes atomically, so a power cut can \
             leave a sector half written, which reads as noise{other}."
        ),
        (_, None, 512) => format!(
            "The size that the disk writes atomically is not known, and every disk writes at least \
             512 bytes{other}."
        ),
        (_, None, _) => format!(
            "You asked for it; the size that the disk writes atomically is not known, and a \
             half-written sector reads as noise{other}."
        ),
    }
}

fn key_derivation(setup: &Setup) -> String {
    match setup.format {
        Format::Luks1 => {
            "LUKS1 has no Argon2: a guess takes as much time as your unlock, and hardly any memory."
        }
        Format::Luks2 => {
            "A guess takes as much time and memory as your unlock, and memory limits how many \
             guesses run in parallel."
        }
    }
    .to_owned()
}

fn trim(machine: &Machine, setup: &Setup) -> String {
    match (setup.allow_discards, machine.flash, machine.discards) {
        (true, ..) => "Flash that knows which blocks are free copies less and lasts longer, and \
                       the disk shows which they are; `cryptmark drive lifetime` says how much that \
                       is."
            .to_owned(),
        (false, Some(false), _) => {
            "A hard disk gains nothing by it, and free blocks stay hidden.".to_owned()
        }
        (false, _, Some(false)) => "The disk does not support discards.".to_owned(),
        (false, _, _) => {
            "It is not known whether the disk supports discards, and free blocks stay hidden."
                .to_owned()
        }
    }
}

fn why_flags(machine: &Machine) -> String {
    match &machine.flags {
        Some(flags) => flags.reason.clone(),
        None => format!(
            "What they change was not measured, and depends on the kernel and the disk; as root, \
             `cryptmark run {FLAGS_PLAN}` measures it."
        ),
    }
}

fn format_reason(setup: &Setup) -> String {
    match setup.format {
        Format::Luks1 => "You asked for it; old boot loaders read no other format.",
        Format::Luks2 => {
            "It has Argon2, larger sectors and a second copy of its header, and it stores flags \
             with the volume."
        }
    }
    .to_owned()
}

/// The alternatives, ciphers first.
pub(super) fn alternatives(
    machine: &Machine,
    setup: &Setup,
    candidates: &[Candidate<'_>],
    chosen: &Candidate<'_>,
) -> Vec<Alternative> {
    let others = candidates
        .iter()
        .filter(|other| !std::ptr::eq(*other, chosen));
    let mut alternatives: Vec<Alternative> = others
        .map(|other| {
            let rate = rate_of(machine, other);
            let rate = rate.map_or_else(String::new, |rate| format!("; {}", a_core(rate)));
            Alternative {
                instead: other.name(),
                cost: format!("costs {}{rate}", other.cost()),
                ratio: Some(other.setup.worst().1),
            }
        })
        .collect();
    let beside = [
        other_key(machine, chosen).map(|other| (format!("{} bits of key", other.key_bits), other)),
        other_sector(machine, chosen)
            .filter(|_| setup.format == Format::Luks2)
            .map(|other| (format!("sectors of {} bytes", other.sector_bytes), other)),
    ];
    for (instead, other) in beside.into_iter().flatten() {
        alternatives.push(Alternative {
            instead,
            cost: in_memory(other),
            ratio: Some(other.ratio),
        });
    }
    let mut add = |instead: &str, cost: &str| {
        alternatives.push(Alternative {
            instead: instead.to_owned(),
            cost: cost.to_owned(),
            ratio: None,
        });
    };
    match (setup.allow_discards, machine.flash) {
        (true, _) => add(
            "TRIM blocked",
            "hides which blocks are free; flash copies more and wears out sooner",
        ),
        (false, Some(false)) => {}
        (false, _) => add(
            "TRIM passed",
            "shows which blocks are free; reduces wear if the drive supports it",
        ),
    }
    match setup.format {
        Format::Luks2 => add(
            "luks1",
            "no Argon2, so a guess needs no memory; sectors of 512 bytes",
        ),
        Format::Luks1 => add("luks2", "16 MiB of header; old boot loaders do not read it"),
    }
    alternatives
}
