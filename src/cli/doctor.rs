//! `cryptmark doctor`: what this machine can measure, and what is missing.

mod energy;

use super::{Failure, print};
use cipher::{Algorithm, CipherError, CipherSpec, Key, SectorLayout};
use clap::Args;
use lab::clock::{Clock, Source, core_hz};
use lab::probe::{self, Capability};
use lab::system::java::Java;
use lab::system::peer::Library;
use lab::system::{Bare, Encryption, SystemId};
use lab::timer_cost::timer_cost;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Options of `cryptmark doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// The storage to inspect: a directory, a file or a block device
    #[arg(long, default_value = ".", value_name = "PATH")]
    at: PathBuf,
}

/// Runs the command.
pub fn run(options: &DoctorOptions) -> Result<(), Failure> {
    if !options.at.exists() {
        return Err(Failure::new(
            2,
            format!("{} does not exist", options.at.display()),
            "Give --at a directory, a file or a block device.",
        ));
    }
    let mut text = String::new();
    machine(&mut text);
    clock(&mut text);
    storage(&mut text, options);
    ciphers(&mut text)?;
    #[cfg(target_os = "linux")]
    secrets(&mut text)?;
    capabilities(&mut text);
    if cfg!(target_os = "linux") {
        sensors(&mut text);
    }
    systems(&mut text);
    print(&text)
}

fn machine(text: &mut String) {
    let host = probe::host();
    let _ = writeln!(text, "machine   {}, {} cores", host.cpu, host.cores);
    let _ = writeln!(text, "          {}, {}", host.os, host.kernel);
    let _ = writeln!(text, "          {}", host.features.join(" "));
    if let Some(hypervisor) = &host.hypervisor {
        let _ = writeln!(
            text,
            "          virtual ({hypervisor}): other guests on the host add noise"
        );
    }
}

fn clock(text: &mut String) {
    let clock = Clock::get();
    let source = match clock.source {
        Source::Tsc => "time-stamp counter",
        Source::Monotonic => "monotonic clock",
        Source::Virtual => "virtual time",
    };
    let _ = writeln!(
        text,
        "clock     {source} at {:.1} MHz, resolution {:.1} ns, a reading costs {:.1} ns",
        clock.hz / 1e6,
        clock.resolution_ns,
        clock.cost_ns
    );
    if let Some(hz) = core_hz() {
        let _ = writeln!(text, "          core clock under load {:.2} GHz", hz / 1e9);
    }
}

fn storage(text: &mut String, options: &DoctorOptions) {
    let device = probe::describe(&options.at);
    let _ = writeln!(
        text,
        "storage   {}: {}{}{}",
        options.at.display(),
        device.kind,
        device
            .model
            .map(|model| format!(", {model}"))
            .unwrap_or_default(),
        device
            .filesystem
            .map(|kind| format!(", {kind}"))
            .unwrap_or_default(),
    );
    if let Some(cache) = device.write_cache {
        let _ = writeln!(
            text,
            "          write cache: {cache}; scheduler: {}",
            device.scheduler.as_deref().unwrap_or("none")
        );
    }
}

fn ciphers(text: &mut String) -> Result<(), Failure> {
    for (index, algorithm) in Algorithm::ALL.iter().enumerate() {
        let label = if index == 0 { "ciphers" } else { "" };
        // XTS is not defined for 8-byte blocks.
        let mode = match algorithm.block_bytes() {
            16 => "xts",
            _ => "cbc",
        };
        let encryption = encryption(&format!("{algorithm}-{mode}-plain64"))?;
        let backends = backends(encryption.spec)?;
        let _ = writeln!(text, "{label:<10}{algorithm}: {}", backends.join(", "));
    }
    for notation in ["aes-xts-plain64", "serpent-xts-plain64"] {
        let cost = timer_cost(encryption(notation)?, 11, 0.04).map_err(|error| {
            Failure::new(
                1,
                error.to_string(),
                "Report this with your machine's data.",
            )
        })?;
        if let Some(ratio) = cost {
            let percent = |ratio: f64| (1.0 - ratio) * 100.0;
            let (least, most) = (percent(ratio.high), percent(ratio.low));
            // A cost that noise hides is not one that helps.
            let cost = match least > 0.0 {
                true => format!("{:.2} % ({least:.2} to {most:.2})", percent(ratio.median)),
                false => format!("less than {:.2} %", most.max(0.01)),
            };
            let _ = writeln!(
                text,
                "          timers cost {cost} with {notation} at 4 KiB"
            );
        }
    }
    Ok(())
}

/// The protection of keys in this program's memory.
#[cfg(target_os = "linux")]
fn secrets(text: &mut String) -> Result<(), Failure> {
    use crate::cli::protection;
    let closed = match protection::is_on() {
        true => "no core dumps; other processes of the user cannot read them",
        false => {
            "core dumps, and other processes of the user can read them: the system refuses protection"
        }
    };
    let _ = writeln!(text, "secrets   {closed}");
    let key = Key::random(64)
        .map_err(|error: CipherError| Failure::new(1, error.to_string(), error.remedy()))?;
    let limit = match protection::lockable() {
        None => "without limit".to_owned(),
        Some(bytes) => format!("up to {} KiB", bytes >> 10),
    };
    let _ = match key.is_locked() {
        true => writeln!(
            text,
            "          keys and passphrases are locked in memory, {limit}; key schedules are not"
        ),
        false => writeln!(
            text,
            "          keys may be swapped out: RLIMIT_MEMLOCK allows no locked memory (ulimit -l)"
        ),
    };
    let lacking = crate::cli::confine::lacking();
    let confined = lacking.unwrap_or("servers, mounts, export and find confine themselves");
    let _ = writeln!(text, "          {confined}");
    Ok(())
}

/// Every backend, those marked that are not constant-time.
fn backends(spec: CipherSpec) -> Result<Vec<String>, Failure> {
    let fail = |error: CipherError| Failure::new(1, error.to_string(), error.remedy());
    let key = Key::random(spec.default_key_size()).map_err(fail)?;
    let marked = |backend| {
        let cipher = spec.cipher(&key, SectorLayout::default(), Some(backend));
        Ok(match cipher.map_err(fail)?.constant_time() {
            true => backend.to_string(),
            false => format!("{backend} (not constant-time)"),
        })
    };
    spec.backends().into_iter().map(marked).collect()
}

fn encryption(notation: &str) -> Result<Encryption, Failure> {
    Encryption::parse(notation, None, 4096, None)
        .map_err(|error| Failure::new(1, error.to_string(), error.remedy()))
}

fn capabilities(text: &mut String) {
    for (index, capability) in probe::capabilities().iter().enumerate() {
        let Capability {
            name,
            purpose,
            state,
        } = capability;
        let label = if index == 0 { "kernel" } else { "" };
        let _ = match state {
            Ok(found) => writeln!(text, "{label:<10}{name}: {found}"),
            Err(remedy) => writeln!(
                text,
                "{label:<10}{name}: absent, needed for {purpose}; {remedy}"
            ),
        };
    }
}

/// The sensors of the machine's energy.
fn sensors(text: &mut String) {
    let hypervisor = probe::host().hypervisor;
    for (index, line) in energy::lines(hypervisor.as_deref()).iter().enumerate() {
        let label = if index == 0 { "energy" } else { "" };
        let _ = writeln!(text, "{label:<10}{line}");
    }
}

fn systems(text: &mut String) {
    for (index, system) in SystemId::all().enumerate() {
        let label = if index == 0 { "systems" } else { "" };
        let name = system.as_str();
        let _ = match found(&system) {
            Ok(Some(version)) => writeln!(text, "{label:<10}{name}: present, {version}"),
            Ok(None) => writeln!(text, "{label:<10}{name}: present"),
            Err(why) => writeln!(text, "{label:<10}{name}: {why}"),
        };
    }
}

/// The version of `system`, if it has one of its own; or why it is not to be had.
fn found(system: &SystemId) -> Result<Option<String>, String> {
    if cfg!(not(target_os = "linux")) && system.needs_linux() {
        return Err("absent, it needs Linux".to_owned());
    }
    match system {
        SystemId::Served(program) => match program.version() {
            None => Err(format!("absent; install {}", program.package())),
            version => Ok(version),
        },
        SystemId::DmCrypt if !Path::new("/sys/module/dm_crypt").exists() => Err(
            "not loaded; as root, run `modprobe dm-crypt` if the kernel has the module".to_owned(),
        ),
        SystemId::Library(library) => version_of(*library).map(Some),
        SystemId::Java => match Java::find() {
            Ok(java) => Ok(Some(java.version().to_owned())),
            Err(why) => Err(format!("absent, {why}")),
        },
        SystemId::BuiltinUblk => Err("measured by the path of its disk, /dev/ublkbN".to_owned()),
        SystemId::UnderFiles(..) => {
            let measured = "measured with --tier fs".to_owned();
            match system.file_program() {
                Some(program) if block::program::is_there(program) => Ok(Some(measured)),
                Some(program) => Err(format!("absent; install {program}")),
                None => Err(measured),
            }
        }
        _ => Ok(None),
    }
}

/// Loads `library` for a cipher that every one has.
fn version_of(library: Library) -> Result<String, String> {
    let told = |error: &dyn std::fmt::Display| format!("absent, {error}");
    let encryption = Encryption::parse("aes-cbc-plain64", None, 512, None);
    let encryption = encryption.map_err(|error| told(&error))?;
    let (opened, absent) = Bare::open(encryption, &[library]).map_err(|error| told(&error))?;
    let loaded = opened.into_iter().nth(1);
    loaded
        .map(|loaded| loaded.version)
        .ok_or_else(|| absent.iter().map(|why| told(why)).collect())
}
