//! `cryptmark volume recall`: what was the passphrase, of which something is still known?

mod kept;

use super::arguments::{Devices, VolumeArguments};
use super::disk::Names;
use super::secrets::{SecretArguments, can_ask};
use super::typed;
use crate::cli::progress::Progress;
use crate::cli::{Failure, limits, print, stop_on_signal};
use cipher::Key;
use clap::Args;
use indicatif::HumanDuration;
use kept::Kept;
use lab::probe;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use volume::judge::Use;
use volume::recall::{
    Candidates, Characters, End, Known, Layout, Layouts, Report, Search, check_format,
};
use volume::{Format, Opening, Secret};
use zeroize::Zeroizing;

/// A search that takes longer is confirmed.
const UNASKED: Duration = Duration::from_secs(600);

/// A search that takes less ends before a user has read the estimate.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// The longest answer to a question, bytes.
const MOST_ANSWER: usize = 256;

/// Options of `cryptmark volume recall`.
#[derive(Debug, Args)]
#[command(
    mut_arg("veracrypt_pim", |arg| arg.help("VeraCrypt's Personal Iterations Multiplier (PIM), or a range of them, e.g. 400..600")),
    mut_arg("volume_key_file", |arg| arg.hide(true))
)]
pub struct RecallOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    #[allow(rustdoc::broken_intra_doc_links, reason = "the help text has brackets")]
    /// Read the given passphrase as a pattern: ? is one of --characters, [abc] one of these; \?, \[ and \\ are literal
    #[arg(long, conflicts_with_all = ["key_file", "keyfile_offset", "keyfile_size"])]
    pattern: bool,
    /// The characters that ? stands for in a pattern, e.g. a-z0-9 [default: printable ASCII]
    #[arg(
        long,
        value_name = "SET",
        requires = "pattern",
        conflicts_with_all = ["key_file", "keyfile_offset", "keyfile_size"]
    )]
    characters: Option<Characters>,
    /// The keyboard on which the volume's passphrase was typed: us, uk, de, fr, es, it or ch
    #[arg(long, value_name = "LAYOUT", requires = "meant")]
    typed_on: Option<Layout>,
    /// The keyboard on which the same keys produce the given passphrase
    #[arg(long, value_name = "LAYOUT", requires = "typed_on")]
    meant: Option<Layout>,
    /// Keep the progress in FILE, and continue from there; the file contains no part of the passphrase
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Print the passphrase that is found
    #[arg(long)]
    show: bool,
    /// Do not ask before a search of more than 10 minutes
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// Runs the command.
pub fn run(options: &RecallOptions, names: &Names) -> Result<(), Failure> {
    let (pims, arguments) = options.volume.with_first_pim();
    let volume = &arguments.with(names);
    let devices = volume.devices(Use::Read)?;
    let format = volume.format(devices.header())?;
    check_format(format)?;
    let opening = match format {
        // Its passphrase can be told to be right, whatever becomes of its data.
        Format::Bestcrypt => {
            volume.refuse_foreign_options(format)?;
            Opening::Bestcrypt
        }
        _ => volume.opening(format)?,
    };
    if let Some(path) = &options.resume {
        volume.check_distinct("--resume", path)?;
    }
    if opening.needs_no_secret(devices.header())? {
        return Err(Failure::new(
            2,
            "the volume opens without a passphrase",
            "Run `cryptmark volume open` without one.",
        ));
    }
    let secret = options.secret.secret(format, volume.image())?;
    let usual = Characters::default();
    let characters = options.characters.as_ref().unwrap_or(&usual);
    let layouts = options.typed_on.zip(options.meant);
    let known = Known {
        secret: &secret,
        pattern: options.pattern.then_some(characters),
        layouts: layouts.map(|(typed_on, meant)| Layouts { typed_on, meant }),
        // One alone is the volume's, as for every command.
        pims: pims.filter(|pims| pims.only().is_none()),
    };
    let candidates = known.candidates()?;
    let words = format!("{opening:?} {:?} {layouts:?} {pims:?}", known.pattern);
    options.search(&devices, &opening, &candidates, &words)
}

impl RecallOptions {
    /// Searches, and says what is found.
    fn search(
        &self,
        devices: &Devices,
        opening: &Opening,
        candidates: &Candidates,
        words: &str,
    ) -> Result<(), Failure> {
        let (header, data) = (devices.header(), devices.data());
        let search = Search::new(opening, header, data, candidates, limits()?)?;
        let count = candidates.count();
        let stop = stop_on_signal()?;
        let kept = match &self.resume {
            Some(path) => Some(Kept::open(path, search.identity(words)?, count)?),
            None => None,
        };
        let begin = kept.as_ref().map_or(0, Kept::tried);
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let free_kib = probe::available_memory().map_or(0, |bytes| bytes >> 10);
        let threads = search.threads(cores, free_kib);
        print(&told(count, begin, threads))?;
        let run = Run {
            options: self,
            search: &search,
            candidates,
            is_bitlk: opening.format() == Format::Bitlk,
            threads,
            kept,
            stop: &stop,
        };
        // As many as are tried at once say how long one takes.
        let first_end = begin.saturating_add(threads.get() as u64).min(count);
        let clock = Instant::now();
        let report = run.part(begin, first_end);
        let elapsed = clock.elapsed();
        if !matches!(report.end, End::Nothing) || report.tried == count {
            return run.conclude(report);
        }
        let times = search.times_as_long(begin..first_end, first_end)?;
        let seconds = elapsed.as_secs_f64() * times;
        let left = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        if left >= WORTH_TELLING {
            print(&format!("time        {} at most\n", HumanDuration(left)))?;
        }
        if left > UNASKED && !self.yes {
            run.keep(report.tried)?;
            confirm()?;
        }
        run.conclude(run.part(first_end, count))
    }
}

/// How many candidates there are.
fn told(count: u64, begin: u64, threads: NonZeroUsize) -> String {
    let mut text = format!("candidates  {count}, {threads} at once\n");
    if begin > 0 {
        text += &format!(
            "tried       {begin} before, if the passphrase and the key files are the same as then\n"
        );
    }
    text
}

/// Asks whether to search for so long.
fn confirm() -> Result<(), Failure> {
    let refused = |what| {
        Failure::new(
            2,
            what,
            "Give --yes, or narrow the search: fewer unknown characters, or a smaller set or range.",
        )
    };
    if !can_ask() {
        return Err(refused("the search takes more than 10 minutes"));
    }
    eprint!("Go on? [y/N] ");
    let _ = io::stderr().flush();
    let answer = typed::standard_input().and_then(|input| typed::line(input, MOST_ANSWER));
    match answer {
        Ok(answer) if matches!(answer.as_bytes(), b"y" | b"Y" | b"yes") => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            Err(Failure::new(130, "interrupted", "Nothing was changed."))
        }
        _ => Err(refused("the search was not confirmed")),
    }
}

/// A search that has begun.
struct Run<'a> {
    options: &'a RecallOptions,
    search: &'a Search<'a>,
    candidates: &'a Candidates,
    is_bitlk: bool,
    threads: NonZeroUsize,
    kept: Option<Kept>,
    stop: &'a AtomicBool,
}

impl Run<'_> {
    /// Tries the candidates from one number to another.
    fn part(&self, begin: u64, end: u64) -> Report {
        let count = self.candidates.count();
        let bar = Progress::candidates(self.options.no_progress, begin, count);
        let watch = |tried| {
            bar.filled(tried);
            if let Some(kept) = &self.kept {
                kept.update(tried);
            }
            match self.stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let report = self.search.run(begin..end, self.threads, &watch);
        bar.finish();
        report
    }

    /// Keeps how many were tried.
    fn keep(&self, tried: u64) -> Result<(), Failure> {
        self.kept.as_ref().map_or(Ok(()), |kept| kept.save(tried))
    }

    /// Says what came of it.
    fn conclude(&self, report: Report) -> Result<(), Failure> {
        let (tried, count) = (report.tried, self.candidates.count());
        match report.end {
            End::Found { number, slot } => {
                // Its number would say which of the candidates it is.
                if let Some(kept) = &self.kept {
                    kept.remove();
                }
                let candidate = self.candidates.candidate(number);
                let mut text = Zeroizing::new(String::with_capacity(MOST_SHOWN));
                *text += &format!("found       {} {}\n", self.subject(), candidate.changes);
                if let Some(slot) = slot {
                    let name = if self.is_bitlk {
                        "protector"
                    } else {
                        "keyslot"
                    };
                    *text += &format!("{name:<12}{slot}\n");
                }
                match &candidate.secret {
                    Secret::Passphrase(key) | Secret::KeyFile(key) if self.options.show => {
                        *text += &shown(key);
                    }
                    _ => {}
                }
                print(&text)
            }
            End::Nothing => {
                self.keep(tried)?;
                Err(Failure::new(
                    3,
                    format!("none of the {count} candidates opens the volume"),
                    self.was_tried(),
                ))
            }
            End::Stopped => {
                self.keep(tried)?;
                Err(Failure::new(
                    130,
                    format!("interrupted after {tried} of {count} candidates"),
                    match self.kept {
                        Some(_) => "Run the same command again to continue from there.",
                        None => {
                            "The progress isn't kept. With --resume FILE, the search can continue another time."
                        }
                    },
                ))
            }
            End::Failed { number, error } => {
                self.keep(tried)?;
                let changes = self.candidates.candidate(number).changes;
                let what = format!("{} {changes}", self.subject());
                Err(Failure::from(error).within(&what))
            }
        }
    }

    /// The thing that is changed, in words.
    fn subject(&self) -> &'static str {
        match (self.options.pattern, self.options.secret.takes_key_file()) {
            (true, _) => "the pattern",
            (false, true) => "the key file",
            (false, false) => "the passphrase",
        }
    }

    /// A sentence that lists the changes that were tried.
    fn was_tried(&self) -> String {
        let mut kinds = vec!["as it is".to_owned()];
        kinds.extend(self.candidates.changes().each());
        if let Some(pims) = self.candidates.pims() {
            kinds.push(format!("each with PIM {} to {}", pims.first(), pims.last()));
        }
        let subject = self.subject();
        format!("Tried {subject} {}.", kinds.join(", "))
    }
}

/// Room for the printed text, so that growing leaves no copy of a part of it in memory.
const MOST_SHOWN: usize = 256 << 10;

/// A passphrase for people: as text, or if it is not text, in hexadecimal.
fn shown(key: &Key) -> Zeroizing<String> {
    let bytes = key.as_bytes();
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = std::str::from_utf8(line).ok();
    let mut shown = Zeroizing::new(String::with_capacity(2 * bytes.len() + 32));
    match text.filter(|text| !text.contains(char::is_control)) {
        Some(text) => {
            shown.push_str("passphrase  ");
            shown.push_str(text);
        }
        None => {
            shown.push_str("hexadecimal ");
            for byte in bytes {
                for digit in [byte >> 4, byte & 15] {
                    shown.extend(char::from_digit(digit.into(), 16));
                }
            }
        }
    }
    shown.push('\n');
    shown
}
