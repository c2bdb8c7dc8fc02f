//! The set-up to choose on this machine and disk, by measuring it.

use crate::cli::progress::Progress;
use crate::cli::run::{check_rates, first_failure, rate as cipher_rate, rescue};
use crate::cli::{Failure, VERSION, open_store_to_measure, print, stop_on_signal, style};
use ::drive::preset::Preset;
use ::report::proposal::{self, Beside, Flags, Format, Machine, Place, Proposal, Rate, quoted};
use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use lab::experiment::{Devices, Sizes};
use lab::probe;
use lab::record::Run;
use lab::run::{new_id, seed_of_now};
use lab::session::simulated::{in_turns, rate};
use lab::session::{Observer, Session, Visit};
use lab::store::Store;
use lab::system::simulated::{CipherRate, name_of, preset, rate_of};
use lab::system::{self, Backend, Encryption, Storage, SystemId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The ciphers that are weighed, in the order of preference: how long they were
/// studied, and how many systems have them.
const CANDIDATES: [&str; 5] = [
    "aes-xts-plain64",
    "xchacha12,aes-adiantum-plain64",
    "xchacha20,aes-adiantum-plain64",
    "serpent-xts-plain64",
    "twofish-xts-plain64",
];

/// The plan that is measured. One true median in 64 lies outside of all that its
/// seven rounds show.
const PLAN: &str = "advice";

/// The seed on simulated drives: the same question has the same answer.
const SEED: u64 = 1;

/// Flash is programmed in pages of so many bytes and more; disks have sectors of 512.
const FLASH_BLOCK: u64 = 4096;
const DISK_BLOCK: u64 = 512;

/// Options about this machine.
#[derive(Debug, Args)]
pub struct HereOptions {
    /// Where you want the volume: a directory, a file or a block device
    #[arg(long, default_value = ".", value_name = "PATH")]
    at: PathBuf,
    /// Propose a set-up for a simulated drive instead: drive:NAME or drive:FILE.toml
    #[arg(long, value_name = "drive:NAME", conflicts_with = "at")]
    system: Option<SystemId>,
    /// Cipher throughput on the target CPU, e.g. aes=145MB/s or xchacha12=600MB/s; only ciphers with a rate are compared [default: all, measured here]
    #[arg(long, value_name = "CIPHER=RATE", value_delimiter = ',', value_parser = cipher_rate, requires = "system", conflicts_with_all = ["at", "yes"])]
    cpu: Vec<(String, CipherRate)>,
    /// Cores of the target CPU
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "system",
        conflicts_with_all = ["at", "yes"]
    )]
    cores: u32,
    /// Memory of the target machine, e.g. 1GB, of which Argon2 takes half at most
    #[arg(long, value_name = "SIZE", requires = "cpu", conflicts_with_all = ["at", "backend", "target", "yes"])]
    memory: Option<ByteSize>,
    /// Consider only this cipher, in dm-crypt notation; can be repeated, the preferred one first
    #[arg(long = "cipher", value_name = "C")]
    ciphers: Vec<String>,
    /// Key size in bits as in cryptsetup, e.g. 512 for AES-256 in XTS
    #[arg(long, value_name = "BITS")]
    key_size: Option<u32>,
    /// Encryption sector size in bytes [default: the disk's physical block size]
    #[arg(long, value_name = "BYTES")]
    sector_size: Option<u32>,
    /// Format of the volume
    #[arg(long = "type", value_enum, default_value = "luks2")]
    kind: Kind,
    /// Overwrite the contents of the file or device that --at names
    #[arg(long, conflicts_with = "system")]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Luks1,
    Luks2,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    proposal: &'a Proposal,
    rates: &'a [Rate],
    run: &'a str,
    check: &'a str,
}

impl HereOptions {
    /// Measures, proposes, and prints.
    pub fn advise(
        &self,
        backend: Option<Backend>,
        json: bool,
        store: Option<&str>,
    ) -> Result<(), Failure> {
        if self.system.is_none() && lab::system::names_export(&self.at) {
            return Err(Failure::new(
                2,
                "set-ups are proposed for directories, files and disks, not for NBD exports",
                "Measure the export with `cryptmark run --at`, and compare the ciphers.",
            ));
        }
        check_rates(&self.cpu)?;
        let format = match self.kind {
            Kind::Luks1 => Format::Luks1,
            Kind::Luks2 => Format::Luks2,
        };
        let mut machine = Machine {
            argon2: self.argon2(),
            ..self.machine()?
        };
        let sector_bytes = self.sector_bytes(&machine, format)?;
        let mut plan = self.plan(sector_bytes)?;
        plan.backend = backend;
        let encryptions = plan.encryptions()?;
        refuse_weak(&encryptions)?;
        let store = open_store_to_measure(store)?;

        let stop = stop_on_signal()?;
        let progress = Progress::new(self.no_progress, plan.extent_bytes());
        machine.rates = self.rates(&encryptions, &progress)?;
        if self.system.is_some() {
            plan.cpu = chosen_rates(&machine.rates, sector_bytes);
        }
        let (storage, seed) = match self.system {
            Some(_) => (Storage::none(), SEED),
            None => {
                let seed = seed_of_now();
                (self.storage(&plan, seed, &progress)?, seed)
            }
        };
        if self.system.is_some() {
            progress.doing("filling the simulated drive");
        }
        let filling = &mut progress.filling(&stop);
        let session = Session::of_devices(&plan, &storage, seed, new_id(), filling)
            .inspect_err(|_| progress.finish())?
            .built_as(VERSION);
        let (run, outcome) = session.measure(&stop, &mut Shown(&progress));
        let answered = match outcome {
            Ok(()) => self
                .beside(&run, &machine, backend, &progress)
                .inspect_err(|_| progress.finish())
                .and_then(|beside| {
                    progress.finish();
                    let flags = self.flags(&run, &store)?;
                    let machine = Machine {
                        beside,
                        flags,
                        ..machine
                    };
                    self.answer(&run, &machine, format, backend, json)
                }),
            Err(error) => {
                progress.finish();
                Err(error.into())
            }
        };
        // The answer is here whether or not the store can keep what it came from.
        let kept = match run.trials.is_empty() {
            true => Ok(()),
            false => store.take_over(std::slice::from_ref(&run)).map(drop),
        };
        first_failure([kept.map_err(|error| rescue(&run, error.into())), answered])
    }

    /// Proposes what a run has shown, and prints it.
    fn answer(
        &self,
        run: &Run,
        machine: &Machine,
        format: Format,
        backend: Option<Backend>,
        json: bool,
    ) -> Result<(), Failure> {
        let Some(mut proposal) = proposal::propose(run, machine, format) else {
            return Err(Failure::new(
                1,
                "no cipher could be compared with the plain disk",
                "Run it again, and report it if that changes nothing.",
            ));
        };
        proposal.notes.extend(self.left_out());
        let check = self.check(&proposal, machine, backend)?;
        if !json {
            return print(&proposal::text(&proposal, run, &check, &style()));
        }
        let answer = Answer {
            proposal: &proposal,
            rates: &machine.rates,
            run: &run.run,
            check: &check,
        };
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::unprintable)?;
        print(&(json + "\n"))
    }

    /// The most memory of Argon2, KiB, and its lanes, on the machine that encrypts.
    fn argon2(&self) -> Option<(u32, u32)> {
        let (cores, memory) = match self.cpu.is_empty() {
            true => {
                let host = probe::host();
                (host.cores, host.memory)
            }
            false => (self.cores, self.memory?.as_u64()),
        };
        let machine = volume::Machine::new(cores, memory);
        Some((machine.memory_kib, machine.lanes))
    }

    /// The facts about the machine that are known before any measurement. Argon2's costs are not
    /// among them.
    fn machine(&self) -> Result<Machine, Failure> {
        let unknown = Machine {
            rates: Vec::new(),
            beside: Vec::new(),
            flash: None,
            discards: None,
            physical_block: None,
            argon2: None,
            flags: None,
            place: Place::Elsewhere,
        };
        let Some(system) = &self.system else {
            let blocks = probe::blocks(&self.at);
            return Ok(Machine {
                flash: match probe::describe(&self.at).kind.as_str() {
                    "ssd" => Some(true),
                    "hdd" => Some(false),
                    _ => None,
                },
                discards: blocks.discards,
                physical_block: blocks.physical,
                place: place(&self.at),
                ..unknown
            });
        };
        let Some(name) = system.drive() else {
            return Err(Failure::new(
                2,
                format!("{} isn't a simulated drive", system.as_str()),
                "Give --system drive:NAME, or --at for a disk of this machine.",
            ));
        };
        let preset = preset(name)?;
        Ok(match preset {
            Preset::Ssd(_) => Machine {
                flash: Some(true),
                discards: Some(true),
                physical_block: Some(FLASH_BLOCK),
                ..unknown
            },
            // Neither a key nor an MTD device is told of discards.
            Preset::Flash(chip) => Machine {
                flash: Some(true),
                discards: Some(false),
                physical_block: Some(chip.page.as_u64()),
                ..unknown
            },
            Preset::Hdd(_) => Machine {
                flash: Some(false),
                discards: Some(false),
                physical_block: Some(DISK_BLOCK),
                ..unknown
            },
        })
    }

    fn sector_bytes(&self, machine: &Machine, format: Format) -> Result<u32, Failure> {
        match (self.sector_size, format) {
            (None | Some(512), Format::Luks1) => Ok(512),
            (Some(bytes), Format::Luks1) => Err(Failure::new(
                2,
                format!("LUKS1 has no sectors of {bytes} bytes"),
                "Omit --sector-size, or take --type luks2.",
            )),
            (Some(bytes), Format::Luks2) => Ok(bytes),
            (None, Format::Luks2) => Ok(proposal::sector_bytes(machine.physical_block, format)),
        }
    }

    /// The plan of the measurements on the disk.
    fn plan(&self, sector_bytes: u32) -> Result<Devices, Failure> {
        let mut plan = Devices::load(PLAN)?;
        plan.sector_size = Sizes::One(sector_bytes);
        plan.key_size = None;
        match &self.system {
            Some(drive) => {
                plan.systems = vec![drive.clone()];
                plan.cores = self.cores;
                if let Some(all) = self.smaller(plan.size)? {
                    plan.size = all;
                }
            }
            None => plan.systems = vec![SystemId::Builtin],
        }
        plan.ciphers = match self.ciphers.is_empty() {
            true => CANDIDATES.map(str::to_owned).to_vec(),
            false => self.ciphers.clone(),
        };
        match self.key_size {
            Some(bits) if self.ciphers.is_empty() => plan.keep_key_size(bits),
            bits => plan.key_size = bits.map(Sizes::One),
        }
        plan.validate()?;
        self.keep_rated(&mut plan)?;
        Ok(plan)
    }

    fn given(&self) -> BTreeMap<String, CipherRate> {
        self.cpu.iter().cloned().collect()
    }

    /// Leaves the ciphers that have a rate, if any is given: this machine's rates are not those of
    /// another one.
    fn keep_rated(&self, plan: &mut Devices) -> Result<(), Failure> {
        if self.cpu.is_empty() {
            return Ok(());
        }
        let given = self.given();
        let encryptions = plan.encryptions()?;
        let rate_of = |encryption: &Encryption| rate_of(encryption, &given).map(|(name, _)| name);
        let is_unused = |name: &str| !encryptions.iter().any(|e| rate_of(e) == Some(name));
        if let Some((name, _)) = self.cpu.iter().find(|(name, _)| is_unused(name)) {
            return Err(lab::experiment::unused_rate(name).into());
        }
        let (rated, others): (Vec<_>, Vec<_>) = plan
            .ciphers
            .drain(..)
            .zip(&encryptions)
            .partition(|(_, encryption)| rate_of(encryption).is_some());
        if let (Some((cipher, encryption)), false) = (others.first(), self.ciphers.is_empty()) {
            return Err(Failure::new(
                2,
                format!("no rate of {cipher} is given for that machine"),
                format!(
                    "Add --cpu {}=RATE, or omit this cipher.",
                    name_of(encryption)
                ),
            ));
        }
        plan.ciphers = rated.into_iter().map(|(cipher, _)| cipher).collect();
        Ok(())
    }

    /// A note about the ciphers that were not compared.
    fn left_out(&self) -> Option<String> {
        let given = self.given();
        let is_rated = |cipher: &&str| {
            let encryption = Encryption::parse(cipher, None, DISK_BLOCK as u32, None);
            encryption.is_ok_and(|encryption| rate_of(&encryption, &given).is_some())
        };
        let unrated: Vec<&str> = CANDIDATES.into_iter().filter(|it| !is_rated(it)).collect();
        let is_silent = self.cpu.is_empty() || !self.ciphers.is_empty() || unrated.is_empty();
        (!is_silent).then(|| {
            let unrated = unrated.join(", ");
            format!("No rate is given of {unrated}, so these were not compared.")
        })
    }

    /// The whole of a simulated drive that does not hold `size`.
    fn smaller(&self, size: ByteSize) -> Result<Option<ByteSize>, Failure> {
        let Some(name) = self.system.as_ref().and_then(SystemId::drive) else {
            return Ok(None);
        };
        let preset = preset(name)?;
        let all = ByteSize::b(preset.capacity());
        Ok((all < size).then_some(all))
    }

    /// Rates of the ciphers with what they are to have.
    fn rates(&self, encryptions: &[Encryption], progress: &Progress) -> Result<Vec<Rate>, Failure> {
        let given = self.given();
        let rates = encryptions.iter().map(|encryption| {
            let (mb_s, interval) = match rate_of(encryption, &given) {
                Some((_, rate)) => (rate.0, None),
                None => {
                    progress.doing(&format!("{} in memory", encryption.spec));
                    let rate = rate(*encryption)?;
                    (rate.median, Some(rate))
                }
            };
            Ok(Rate {
                cipher: encryption.spec.to_string(),
                key_bits: encryption.key_bits,
                sector_bytes: encryption.sector_size.bytes() as u32,
                mb_s,
                interval,
            })
        });
        rates.collect()
    }

    /// The chosen cipher with other sectors and with half an XTS key, measured beside it, unless it
    /// is for another machine.
    fn beside(
        &self,
        run: &Run,
        machine: &Machine,
        backend: Option<Backend>,
        progress: &Progress,
    ) -> Result<Vec<Beside>, Failure> {
        let Some((cipher, key_bits, sector_bytes)) = proposal::chosen(run) else {
            return Ok(Vec::new());
        };
        let is_measured = |rate: &Rate| rate.cipher == cipher && rate.interval.is_some();
        if !machine.rates.iter().any(is_measured) {
            return Ok(Vec::new());
        }
        let with = |bits: u32, sector: u32| Encryption::parse(&cipher, Some(bits), sector, backend);
        let chosen = with(key_bits, sector_bytes)?;
        let other = if sector_bytes == 512 { 4096 } else { 512 };
        let mut beside = Vec::new();
        for (key_bits, sector_bytes) in [(key_bits / 2, sector_bytes), (key_bits, other)] {
            // Not every cipher has a key of half the size.
            let Ok(encryption) = with(key_bits, sector_bytes) else {
                continue;
            };
            progress.doing(&format!("{cipher} beside itself in memory"));
            let (ratio, verdict) = in_turns(chosen, encryption)?;
            beside.push(Beside {
                key_bits,
                sector_bytes,
                ratio,
                verdict,
            });
        }
        Ok(beside)
    }

    /// What the newest run of this machine has shown of dm-crypt's flags on the disk of `run`.
    fn flags(&self, run: &Run, store: &Store) -> Result<Option<Flags>, Failure> {
        let device = run.trials.first().map(|trial| &trial.device);
        let here = run.host.key();
        let mut all = store.list()?;
        all.retain(|it| it.plan == proposal::FLAGS_PLAN && !it.partial && it.host == here);
        let newest = all.into_iter().max_by(|one, other| one.run.cmp(&other.run));
        let (Some(device), Some(newest), None) = (device, newest, &self.system) else {
            return Ok(None);
        };
        Ok(Flags::shown(&store.load(&newest.run)?, device))
    }

    fn storage(&self, plan: &Devices, seed: u64, progress: &Progress) -> Result<Storage, Failure> {
        let stop = stop_on_signal()?;
        let place = system::Place {
            at: &self.at,
            size: plan.extent_bytes(),
            seed,
            overwrite: self.yes,
            engine: None,
        };
        let storage = Storage::prepare(place, &mut progress.filling(&stop));
        Ok(storage.inspect_err(|_| progress.finish())?)
    }

    /// The command that measures the proposal as it was measured.
    fn check(
        &self,
        proposal: &Proposal,
        machine: &Machine,
        backend: Option<Backend>,
    ) -> Result<String, Failure> {
        let setup = &proposal.setup;
        let bits = Some(setup.key_size);
        let encryption = Encryption::parse(&setup.cipher, bits, setup.sector_size, None)?;
        let mut command = format!("cryptmark run {PLAN}");
        match &self.system {
            Some(drive) => {
                let is_its = |rate: &&Rate| {
                    (&rate.cipher, rate.sector_bytes) == (&setup.cipher, setup.sector_size)
                };
                let mb_s = machine
                    .rates
                    .iter()
                    .find(is_its)
                    .map_or(0.0, |rate| rate.mb_s);
                let name = name_of(&encryption);
                command += &format!(
                    " --system {} --cpu {name}={mb_s}MB/s",
                    quoted(drive.as_str())
                );
                if self.cores > 1 {
                    command += &format!(" --cores {}", self.cores);
                }
                if let Some(all) = self.smaller(Devices::load(PLAN)?.size)? {
                    command += &format!(" --size {}", all.as_u64());
                }
            }
            None => {
                let at = self.at.display().to_string();
                command += &format!(" --at {}", quoted(&at));
                if let Some(backend) = backend {
                    command += &format!(" --backend {backend}");
                }
            }
        }
        command += &format!(
            " --cipher {} --key-size {} --sector-size {}",
            setup.cipher, setup.key_size, setup.sector_size
        );
        Ok(command)
    }
}

/// Refuses ciphers that protect little, because this command recommends ciphers for new volumes.
fn refuse_weak(encryptions: &[Encryption]) -> Result<(), Failure> {
    for Encryption { spec, .. } in encryptions {
        if let Some(weakness) = spec.weaknesses().first() {
            return Err(Failure::new(
                2,
                format!("{spec} is not for new volumes: {weakness}"),
                format!("Take {}, or omit --cipher.", CANDIDATES[0]),
            ));
        }
    }
    Ok(())
}

/// The rates of what is measured, by notation: the first of each cipher.
fn chosen_rates(rates: &[Rate], sector_bytes: u32) -> BTreeMap<String, CipherRate> {
    let mut chosen = BTreeMap::new();
    for rate in rates
        .iter()
        .filter(|rate| rate.sector_bytes == sector_bytes)
    {
        let first = chosen.entry(rate.cipher.clone());
        first.or_insert(CipherRate(rate.mb_s));
    }
    chosen
}

/// The place of a new volume at `at`, or of the one that is there.
fn place(at: &Path) -> Place {
    let whole = std::path::absolute(at).unwrap_or_else(|_| at.to_owned());
    match at.is_dir() {
        true => Place::New(whole.join("volume.img").display().to_string()),
        false => Place::There(whole.display().to_string()),
    }
}

/// Shows the progress. Nothing is kept before the run is complete.
struct Shown<'a>(&'a Progress);

impl Observer for Shown<'_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        self.0.visiting(visit);
    }

    fn keep(
        &mut self,
        _: &Run,
        _: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}
