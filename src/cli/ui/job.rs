//! [`Job`]: a command of this program that takes a while, in a process of its own.

use super::jobs::{Kind, MESSAGES, Order};
use super::noise::Noise;
use crate::cli::progress::Told;
use crate::cli::web::Answer;
use ::report::window::{self, Watch};
use lab::store::Store;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often followers hear of a job that says nothing.
const TICK: Duration = Duration::from_secs(1);

/// A command that goes on, or has ended.
pub struct Job {
    number: usize,
    title: String,
    command: String,
    kind: Kind,
    pauses: bool,
    process: u32,
    since: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Counts the changes.
    version: u64,
    word: &'static str,
    ended: bool,
    /// How long it took.
    took: Option<Duration>,
    step: String,
    done: u64,
    total: u64,
    messages: String,
    run: Option<String>,
    /// How often the store got more of the run.
    kept: u64,
    /// The answer after so many times.
    answer: (u64, String),
}

impl Job {
    /// The job of a process that was just started by the command `typed`.
    pub fn of(number: usize, typed: String, order: Order, process: u32) -> Self {
        Self {
            number,
            command: typed,
            title: order.title,
            kind: order.kind,
            pauses: order.pauses,
            process,
            since: Instant::now(),
            state: Mutex::new(State {
                word: "Waiting",
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Its number, by which pages name it.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The question, or what is done.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether it measures, and has not ended.
    pub fn measures_now(&self) -> bool {
        self.kind.measures() && !self.ended()
    }

    /// The address of its page.
    pub fn address(&self) -> String {
        format!("watch?job={}", self.number)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        state.version += 1;
        self.changed.notify_all();
    }

    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        self.lock().ended
    }

    /// Reads what the command says until it has ended.
    pub fn attend(&self, mut child: Child) {
        let (out, errors) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            scope.spawn(|| self.read(out));
            self.read(errors);
        });
        let ended = child.wait();
        self.change(|state| {
            state.ended = true;
            state.took = Some(self.since.elapsed());
            state.kept += 1;
            let code = ended.ok().and_then(|ended| ended.code());
            state.word = match code {
                Some(0) => "Done",
                Some(130) => "Stopped",
                _ => "Failed",
            };
        });
    }

    fn read(&self, from: Option<impl Read>) {
        let Some(from) = from else {
            return;
        };
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from
            .by_ref()
            .take(MESSAGES as u64)
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            self.hear(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }

    fn hear(&self, line: &str) {
        let told = Told::read(line);
        self.change(|state| match told {
            Some(Told::Step { step, done, total }) => {
                if state.word == "Waiting" {
                    state.word = "Measuring";
                }
                (state.step, state.done, state.total) = (step, done, total);
            }
            Some(Told::Kept { run }) => {
                state.run = Some(run);
                state.kept += 1;
            }
            // A job that is being stopped goes on to its end.
            Some(Told::Paused | Told::Resumed) if state.word == "Stopping" => {}
            Some(Told::Paused) => state.word = "Paused",
            Some(Told::Resumed) => state.word = "Measuring",
            // The end of what it says is where it says why it ended.
            None => {
                state.messages.push_str(line);
                while state.messages.len() > MESSAGES {
                    let first = state.messages.find('\n').map_or(line.len(), |at| at + 1);
                    state.messages.drain(..first.min(state.messages.len()));
                }
            }
        });
    }

    /// Pauses it after the present visit, or lets it go on.
    pub fn pause_or_continue(&self) {
        let signal = match self.lock().word {
            "Measuring" => Signal::TSTP,
            "Paused" => Signal::CONT,
            _ => return,
        };
        self.signal(signal);
        // The page comes back when it has happened, if it happens soon.
        let state = self.lock();
        let same = |state: &mut State| {
            !state.ended && (state.word == "Paused") == (signal == Signal::CONT)
        };
        let _ = self
            .changed
            .wait_timeout_while(state, Duration::from_secs(2), same);
    }

    /// Ends it. What was measured so far stays.
    pub fn stop(&self) {
        let paused = {
            let mut state = self.lock();
            // A second signal would end it at once, and what it has not stored would be lost.
            if state.ended || state.word == "Stopping" {
                return;
            }
            std::mem::replace(&mut state.word, "Stopping") == "Paused"
        };
        self.change(|_| {});
        self.signal(Signal::INT);
        if paused {
            self.signal(Signal::CONT);
        }
    }

    /// Sends a signal, unless the process has ended and another may have its number.
    fn signal(&self, signal: Signal) {
        let state = self.lock();
        if let (false, Some(process)) = (state.ended, Pid::from_raw(self.process as i32)) {
            let _ = kill_process(process, signal);
        }
    }

    /// The job as a page shows it, with its answer if that is newer than `known`.
    fn watch(&self, store: &Store, known: Option<u64>, noise: &mut Noise) -> (Watch, u64, u64) {
        self.renew(store);
        let state = self.lock();
        let took = state.took.unwrap_or_else(|| self.since.elapsed()).as_secs();
        let time = match took {
            0..=59 => format!("{took} s"),
            _ => format!("{} min {} s", took / 60, took % 60),
        };
        let (kept, answer) = &state.answer;
        let watch = Watch {
            job: self.number,
            title: self.title.clone(),
            command: self.command.clone(),
            of_volumes: self.kind == Kind::Volume,
            pauses: self.pauses,
            state: state.word,
            ended: state.ended,
            step: if state.ended {
                String::new()
            } else {
                state.step.clone()
            },
            done: state.done,
            total: state.total,
            left: match state.ended {
                true => format!("Took {time}."),
                false => format!("Running for {time}."),
            },
            noise: match state.ended || !self.kind.measures() {
                true => String::new(),
                false => noise.since(),
            },
            messages: state.messages.clone(),
            answer: (known != Some(*kept)).then(|| answer.clone()),
            report: match (&state.run, state.ended && !answer.is_empty()) {
                (Some(run), true) => Some(Watch::report_of(run)),
                _ => None,
            },
            run: state.run.clone(),
        };
        (watch, *kept, state.version)
    }

    /// Makes the answer anew if the store has more of the run.
    fn renew(&self, store: &Store) {
        let (kept, run) = {
            let state = self.lock();
            match &state.run {
                Some(run) if state.answer.0 < state.kept => (state.kept, run.clone()),
                _ => return,
            }
        };
        let answer = match store.load(&run) {
            Ok(run) if !run.trials.is_empty() => window::so_far(&run),
            // It is not there yet.
            _ => String::new(),
        };
        let mut state = self.lock();
        if state.answer.0 < kept {
            state.answer = (kept, answer);
        }
    }

    /// Its page.
    pub fn page(&self, store: &Store) -> Answer {
        let mut noise = Noise::beside(self.process);
        Answer::page(self.watch(store, None, &mut noise).0.page())
    }
}

/// Tells a browser what is new about a job, until it has ended.
pub fn follow(job: Arc<Job>, store: Arc<Store>) -> Answer {
    Answer::events(move |events| {
        let mut noise = Noise::beside(job.process);
        let mut known = None;
        loop {
            let (watch, kept, version) = job.watch(&store, known, &mut noise);
            known = Some(kept);
            let data = serde_json::to_string(&watch).expect("a job has nothing that JSON lacks");
            events.send(&data)?;
            if watch.ended {
                return Ok(());
            }
            let same = |state: &mut State| state.version == version;
            let state = job.lock();
            let _ = job.changed.wait_timeout_while(state, TICK, same);
        }
    })
}
