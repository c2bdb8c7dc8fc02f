//! [`Job`]: a command of this program that takes a while, in a process of its own.

use super::noise::Noise;
use crate::cli::progress::{TOLD_BY, Told};
use crate::cli::web::{Answer, Request};
use crate::cli::{Failure, stop_on_signal};
use ::report::proposal::quoted;
use ::report::window::{self, Watch};
use lab::store::Store;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How often followers hear of a job that says nothing.
const TICK: Duration = Duration::from_secs(1);
/// Bytes of a command's messages that are kept.
const MESSAGES: usize = 64 << 10;
/// Ended jobs that can still be looked at.
const KEPT: usize = 32;
/// How long a job may take to end after it was stopped, when the server ends.
const ENDING: Duration = Duration::from_secs(20);

/// A command of this program.
pub struct Order {
    /// The question, or what is done.
    pub title: String,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What it reads from standard input.
    pub secret: Option<Zeroizing<String>>,
    pub kind: Kind,
}

/// What a job is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It measures, and stores a run. One at a time.
    Run,
    /// It measures, and prints what it proposes. One at a time.
    Advice,
    /// It works on a volume.
    Volume,
}

impl Kind {
    fn measures(self) -> bool {
        self != Self::Volume
    }
}

/// The program, and its jobs.
pub struct Jobs {
    program: PathBuf,
    store: Option<OsString>,
    jobs: Mutex<Vec<Arc<Job>>>,
}

/// What came of a short command.
pub struct Came {
    pub code: Option<i32>,
    pub out: String,
    pub errors: String,
}

impl Jobs {
    /// Jobs for a store.
    ///
    /// # Errors
    /// This program is not found.
    pub fn new(store: Option<&str>) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            let remedy = "Start it from where it is installed.";
            Failure::new(1, format!("cannot find this program: {error}"), remedy)
        })?;
        Ok(Self {
            program,
            store: store.map(OsString::from),
            jobs: Mutex::default(),
        })
    }

    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(store) = &self.store {
            command.arg("--store").arg(store);
        }
        command.args(arguments);
        command
    }

    /// The command as a user types it.
    pub fn typed(arguments: &[OsString]) -> String {
        let words = arguments.iter();
        let words = words.map(|word| quoted(&word.to_string_lossy()));
        let words: Vec<String> = words.collect();
        format!("cryptmark {}", words.join(" "))
    }

    /// Runs a short command until it has ended.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn ask(&self, arguments: &[OsString], secret: Option<&str>) -> Result<Came, Failure> {
        // A server that stays behind keeps pipes open, and files not.
        let files = tempfile::tempfile().and_then(|out| Ok((out, tempfile::tempfile()?)));
        let (out, errors) = files.map_err(cannot_start)?;
        let both = out
            .try_clone()
            .and_then(|out| Ok((out, errors.try_clone()?)));
        let (to_out, to_errors) = both.map_err(cannot_start)?;
        let mut child = self
            .command(arguments)
            .stdin(input(secret))
            .stdout(to_out)
            .stderr(to_errors)
            .spawn()
            .map_err(cannot_start)?;
        hand_over(&mut child, secret);
        let ended = child.wait().map_err(cannot_start)?;
        Ok(Came {
            code: ended.code(),
            out: text(out),
            errors: text(errors),
        })
    }

    /// Runs a command in this terminal; its exit code.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn hand_over_to(&self, arguments: &[OsString]) -> Result<u8, Failure> {
        // Ctrl-C is for the command, which ends in order.
        let _ = stop_on_signal()?;
        let ended = self.command(arguments).status().map_err(cannot_start)?;
        Ok(ended
            .code()
            .and_then(|code| code.try_into().ok())
            .unwrap_or(1))
    }

    /// Starts a long command.
    ///
    /// # Errors
    /// Another one measures already, or it cannot be started.
    pub fn start(&self, order: Order) -> Result<Arc<Job>, Failure> {
        let mut jobs = self.lock();
        if order.kind.measures()
            && let Some(other) = jobs.iter().find(|job| job.kind.measures() && !job.ended())
        {
            return Err(Failure::new(
                2,
                format!("another measurement is under way: {}", other.title),
                "Wait for its end, or stop it. Two would disturb each other.",
            ));
        }
        let secret = order.secret.as_ref().map(|secret| secret.as_str());
        let mut child = self
            .command(&order.arguments)
            .env(TOLD_BY, "json")
            .stdin(input(secret))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot_start)?;
        hand_over(&mut child, secret);
        let job = Arc::new(Job {
            number: jobs.last().map_or(1, |last| last.number + 1),
            command: Self::typed(&order.arguments),
            title: order.title,
            kind: order.kind,
            process: child.id(),
            since: Instant::now(),
            state: Mutex::new(State {
                word: "Waiting",
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        jobs.push(Arc::clone(&job));
        let over = jobs.len().saturating_sub(KEPT);
        let mut spare = over;
        jobs.retain(|job| {
            let goes = spare > 0 && job.ended();
            spare -= usize::from(goes);
            !goes
        });
        let watched = Arc::clone(&job);
        std::thread::spawn(move || watched.attend(child));
        Ok(job)
    }

    /// The job that a request names.
    ///
    /// # Errors
    /// There is none.
    pub fn asked(&self, request: &Request) -> Result<Arc<Job>, Failure> {
        let number = request.field("job").parse::<usize>().ok();
        let jobs = self.lock();
        let found = jobs.iter().find(|job| Some(job.number) == number);
        found.cloned().ok_or_else(|| {
            let remedy = "Its run is in the list if it was stored.";
            Failure::new(2, "there is no such measurement any more", remedy)
        })
    }

    /// The measurement that goes on: its number and its title.
    pub fn measuring(&self) -> Option<(usize, String)> {
        let jobs = self.lock();
        let job = jobs
            .iter()
            .find(|job| job.kind.measures() && !job.ended())?;
        Some((job.number, job.title.clone()))
    }

    /// Stops all that goes on, and waits for it.
    pub fn stop_all(&self) {
        let start = Instant::now();
        let jobs: Vec<_> = self.lock().iter().map(Arc::clone).collect();
        for job in &jobs {
            job.stop();
        }
        while jobs.iter().any(|job| !job.ended()) && start.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cannot_start(error: std::io::Error) -> Failure {
    let remedy = "Look for the reason on the terminal where cryptmark runs.";
    Failure::new(1, format!("the command cannot be started: {error}"), remedy)
}

fn input(secret: Option<&str>) -> Stdio {
    match secret {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    }
}

/// Writes the secret to the child, which may have ended without reading it.
fn hand_over(child: &mut Child, secret: Option<&str>) {
    if let (Some(mut to), Some(secret)) = (child.stdin.take(), secret) {
        let _ = to
            .write_all(secret.as_bytes())
            .and_then(|()| to.write_all(b"\n"));
    }
}

/// The beginning of a file that a command has written.
fn text(mut file: fs::File) -> String {
    use std::io::Seek;
    let mut bytes = Vec::new();
    let _ = file.rewind();
    let _ = file.take(MESSAGES as u64).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A command that goes on, or has ended.
pub struct Job {
    number: usize,
    title: String,
    command: String,
    kind: Kind,
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

    fn ended(&self) -> bool {
        self.lock().ended
    }

    /// Reads what the command says until it has ended.
    fn attend(&self, mut child: Child) {
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
            if state.ended {
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
            pauses: self.kind.measures(),
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
