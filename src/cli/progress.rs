//! Live progress on standard error: cell, repetition, time left.

mod told;

pub use told::{TOLD_BY, Told};

use super::pause;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::run::Step;
use lab::session::Visit;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use told::Teller;

/// A progress bar. It is silent if standard error is not a terminal or the user asked for silence.
/// The program that started this one may ask for lines that it can read ([`Told`]).
pub struct Progress {
    bar: ProgressBar,
    teller: Option<Teller>,
    /// Whether a search has shown itself: several threads report its progress.
    shown: Once,
    /// Whether anything was visited: of slices the first may begin after the start.
    visited: Once,
}

impl Progress {
    /// Starts with filling the test extent of `bytes` bytes.
    pub fn new(silent: bool, bytes: u64) -> Self {
        let bar = ProgressBar::new(bytes);
        if silent || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(template(
            "{spinner} {msg:<44} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        ));
        bar.set_message("filling the test file");
        Self {
            bar,
            teller: Teller::asked_for(),
            shown: Once::new(),
            visited: Once::new(),
        }
    }

    /// Starts with copying `bytes` bytes.
    pub fn bytes(silent: bool, bytes: u64) -> Self {
        let progress = Self::new(silent, bytes);
        progress.bar.set_style(template(
            "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        ));
        progress
    }

    /// Starts with writing pages to a simulated drive.
    pub fn pages(silent: bool) -> Self {
        let progress = Self::new(silent, 0);
        progress.bar.set_style(template(
            "{bar:40} {human_pos}/{human_len} pages {per_sec} {eta} left",
        ));
        progress
    }

    /// Starts with playing a trace whose length is not known.
    pub fn requests(silent: bool) -> Self {
        let progress = Self::new(silent, 0);
        let style = template("{spinner} {human_pos} requests {per_sec}");
        progress.bar.set_style(style);
        progress
    }

    /// Starts with writing trials, whose number is unknown.
    #[cfg(feature = "fleet")]
    pub fn trials(silent: bool) -> Self {
        let progress = Self::new(silent, 0);
        let style = template("{spinner} {human_pos} trials {per_sec}");
        progress.bar.set_style(style);
        progress
    }

    /// Starts with living through the lives of drives.
    pub fn lives(silent: bool) -> Self {
        let progress = Self::new(silent, 0);
        let style = template("{spinner} {msg:<44} {bar:24} {percent} %, {eta} left");
        progress.bar.set_style(style);
        progress
    }

    /// Starts with trying passphrases, after `done` of `total` that were tried before.
    pub fn candidates(silent: bool, done: u64, total: u64) -> Self {
        let progress = Self::new(silent, total);
        let style = template("{spinner} {human_pos}/{human_len} {bar:40} {per_sec} {eta} left");
        progress.bar.set_style(style);
        progress.bar.set_position(done);
        progress.bar.reset_eta();
        progress
    }

    /// Shows the current step.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.tell();
    }

    /// How many of how many are done.
    pub fn counted(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.tell();
    }

    /// Starts with trying key derivations; nothing shows before the first is told.
    pub fn search() -> Self {
        let progress = Self::new(true, 0);
        progress
            .bar
            .set_style(template("{spinner} {msg} {bar:40} {percent} %, {eta} left"));
        progress.bar.set_message("trying key derivations");
        progress
    }

    /// Shows that something is done that takes a while.
    pub fn waiting(message: &'static str) -> Self {
        let progress = Self::new(false, 0);
        progress
            .bar
            .set_style(template("{spinner} {msg} {elapsed}"));
        progress.bar.set_message(message);
        progress.bar.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    /// Starts with steps, some of which say how far they are.
    pub fn steps(silent: bool) -> Self {
        let progress = Self::new(silent, 0);
        progress
            .bar
            .set_style(template("{spinner} {msg:<32} {bar:40} {elapsed} elapsed"));
        progress
    }

    /// Shows a step, `done` of `total`.
    pub fn step(&self, name: &str, done: u64, total: u64) {
        if self.bar.message() != name {
            self.bar.set_message(name.to_owned());
            // Some say nothing for a while.
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
        self.bar.set_length(total.max(done).max(1));
        self.bar.set_position(done);
        self.tell();
    }

    /// How far the search is.
    pub fn searched(&self, done: u64, total: u64) {
        self.shown.call_once(|| {
            self.bar.set_length(total);
            if std::io::stderr().is_terminal() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        });
        self.bar.set_position(done);
        self.tell();
    }

    /// Shows how far something is filled, until `stop` ends it.
    pub fn filling(&self, stop: &AtomicBool) -> impl FnMut(u64) -> ControlFlow<()> {
        move |filled| {
            self.filled(filled);
            self.pause();
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }

    /// Shows a step before the first visit, and answers with `stop`.
    pub fn preparing(&self, step: Step<'_>, stop: &AtomicBool) -> ControlFlow<()> {
        match step {
            Step::Filling { done, .. }
            | Step::FillingDrive {
                done: done @ 1.., ..
            } => {
                return self.filling(stop)(done);
            }
            Step::FillingDrive { .. } => self.doing(&step.to_string()),
            Step::Sharing => self.looking_for(&step.to_string()),
            Step::Visiting(visit) => self.visiting(visit),
        }
        ControlFlow::Continue(())
    }

    /// Shows that something is looked for that takes a while, before the first visit.
    pub fn looking_for(&self, what: &str) {
        self.bar
            .set_style(template("{spinner} {msg} {elapsed} elapsed"));
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(200));
        self.tell();
    }

    /// Shows how much is filled, copied or played.
    pub fn filled(&self, done: u64) {
        self.bar.set_position(done);
        self.tell();
    }

    /// Pauses here if the user has asked for that.
    fn pause(&self) {
        pause::here(|pauses| {
            if let Some(teller) = &self.teller {
                teller.pausing(pauses);
            }
        });
    }

    /// Shows a visit of a cell, and pauses before it if the user has asked for that.
    pub fn visiting(&self, visit: &Visit<'_>) {
        if visit.done == 0 || !self.visited.is_completed() {
            self.visited.call_once(|| {});
            // The measured program must be the only one that wakes up.
            self.bar.disable_steady_tick();
            self.bar.reset();
            // A rate of slices says nothing: their end is known.
            let left = if visit.rounds.is_some() {
                ", {eta} left"
            } else {
                ""
            };
            let line = format!("{{prefix}}{{spinner}} {{msg}} {{wide_bar}} {{percent}} %{left}");
            self.bar.set_style(template(&line));
        }
        self.bar.set_length(visit.visits);
        self.bar.set_position(visit.done);
        self.bar.set_message(match visit.rounds {
            Some(rounds) => {
                let of = visit.round;
                format!("{} · {} · {of}/{rounds}", visit.workload, visit.label)
            }
            // Slices are too short to be read, and are counted in tenths of a second.
            None => {
                let left = visit.visits.saturating_sub(visit.done) / 10;
                format!("round {}, {left} s left at most", visit.round)
            }
        });
        self.tell();
        self.pause();
    }

    /// Tells that the store has more of a run.
    pub fn kept(&self, run: &str) {
        if let Some(teller) = &self.teller {
            teller.kept(run);
        }
    }

    /// Tells the program that started this one, if it asked.
    fn tell(&self) {
        if let Some(teller) = &self.teller {
            let total = self.bar.length().unwrap_or(0);
            teller.step(&self.bar.message(), self.bar.position(), total);
        }
    }

    /// Shows what is known so far, a line each.
    pub fn so_far(&self, lines: &[String]) {
        let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.bar.set_prefix(whole);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn template(text: &str) -> ProgressStyle {
    ProgressStyle::with_template(text)
        .expect("the templates of this file are valid")
        .progress_chars("█▉▊▋▌▍▎▏ ")
}
