//! [`Pace`]: the speed of a core while other cores of its host work, too.
//!
//! A virtual processor is often one of two threads of a real core. It slows down by up to a half
//! while another guest's virtual processor runs on the other thread. Its clock also falls with the
//! load of the other cores. No counter of this machine shows either effect. A thread on the same
//! core therefore repeats the same small piece of work and times it. The work has many independent
//! chains, because a single dependent chain is just as fast on a shared core.

use super::affinity::stay_on_core;
use crate::clock::unix_time;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time from one piece of work to the next. With [`ROUNDS`], the work takes about a hundredth of
/// the core.
const PERIOD: Duration = Duration::from_millis(6);

/// Rounds of a piece: some 65 µs at 3.7 GHz.
const ROUNDS: u64 = 20_000;

/// Rounds before it that are not timed: the core has just done something else.
const WARM_UP: u64 = 1_000;

/// Share of the fastest pieces whose slowest is the full pace: few, because clocks
/// drift, and are at their best for seconds only. Nothing makes a piece too fast.
const FASTEST: f64 = 0.001;

/// Times the full pace that a piece counts at most: a longer one was interrupted, or
/// waits more than operations do. With this they take as much longer as pieces do.
const LONGEST: f64 = 1.5;

/// Shortest span over which a pace is taken, seconds: ten pieces.
const SPAN: f64 = 0.06;

/// Fewest pieces that say something about a span.
const FEWEST: usize = 5;

/// A watched core, until it is dropped.
#[derive(Debug)]
pub struct Pace {
    beats: Arc<Mutex<Vec<Beat>>>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

/// One piece of work.
#[derive(Clone, Copy, Debug)]
struct Beat {
    /// When, Unix time in seconds.
    at: f64,
    /// How long it took, seconds.
    took: f64,
}

impl Pace {
    /// Begins to watch the `nth` core that this thread may use, modulo their number; `None` if no
    /// thread can be kept on it.
    pub fn watch(nth: u32) -> Option<Self> {
        let (beats, over) = (Arc::default(), Arc::default());
        let mut pace = Self {
            beats: Arc::clone(&beats),
            over: Arc::clone(&over),
            watcher: None,
        };
        let (say, kept) = std::sync::mpsc::channel();
        let watch = move || {
            // The receiver is gone if the watch has ended.
            let _ = say.send(stay_on_core(nth));
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(PERIOD);
                locked(&beats).push(Beat::now());
            }
        };
        let thread = std::thread::Builder::new().name("pace".to_owned());
        pace.watcher = Some(thread.spawn(watch).ok()?);
        kept.recv().is_ok_and(|kept| kept).then_some(pace)
    }

    /// All that was seen so far.
    pub fn seen(&self) -> Seen {
        let beats = locked(&self.beats).clone();
        let mut times: Vec<f64> = beats.iter().map(|beat| beat.took).collect();
        times.sort_by(f64::total_cmp);
        let full = times.get((times.len() as f64 * FASTEST) as usize).copied();
        Seen { beats, full }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            // It cannot panic, and has nothing to tell.
            let _ = watcher.join();
        }
    }
}

fn locked(beats: &Mutex<Vec<Beat>>) -> MutexGuard<'_, Vec<Beat>> {
    beats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Beat {
    fn now() -> Self {
        let at = unix_time();
        work(WARM_UP);
        let begun = Instant::now();
        work(ROUNDS);
        Self {
            at,
            took: begun.elapsed().as_secs_f64(),
        }
    }
}

/// Does as much as a core can do at a time.
fn work(rounds: u64) {
    let (mut sums, mut turns) = ([1_u64; 8], [3_u64; 8]);
    for round in 0..rounds {
        for (sum, turn) in sums.iter_mut().zip(&mut turns) {
            *sum = black_box(sum.wrapping_add(round) ^ 0x55);
            *turn = turn.rotate_left(5) ^ *sum;
        }
    }
    black_box((sums, turns));
}

/// The recorded observations of a core.
#[derive(Debug)]
pub struct Seen {
    beats: Vec<Beat>,
    full: Option<f64>,
}

impl Seen {
    /// The mean speed over `seconds` from `begun` (Unix time) on, or over a little more if that is
    /// short. Full speed is 1, and ½ is half of it. `None` if there are too few observations.
    pub fn pace(&self, begun: f64, seconds: f64) -> Option<f64> {
        let full = self.full?;
        let wider = ((SPAN - seconds) / 2.0).max(0.0);
        let (first, last) = (begun - wider, begun + seconds + wider);
        let index = |time: f64| self.beats.partition_point(|beat| beat.at < time);
        let within = self.beats.get(index(first)..index(last))?;
        if within.len() < FEWEST {
            return None;
        }
        let took = |beat: &Beat| beat.took.clamp(full, full * LONGEST);
        let mean = within.iter().map(took).sum::<f64>() / within.len() as f64;
        Some(full / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred pieces a second from 1000 s on, each as slow as `slow` says.
    fn seen(slow: impl Fn(usize) -> f64) -> Seen {
        let beat = |index: usize| Beat {
            at: 1000.0 + index as f64 / 100.0,
            took: slow(index) * 40e-6,
        };
        let beats: Vec<Beat> = (0..1000).map(beat).collect();
        Seen {
            beats,
            full: Some(40e-6),
        }
    }

    #[test]
    fn a_span_has_the_pace_of_its_pieces() {
        // Shared from the second second to the fourth.
        let seen = seen(|index| {
            if (200..400).contains(&index) {
                1.25
            } else {
                1.0
            }
        });
        let near = |pace: Option<f64>, wanted: f64| (pace.unwrap() - wanted).abs() < 0.01;
        assert!(near(seen.pace(1000.5, 1.0), 1.0));
        assert!(near(seen.pace(1002.5, 1.0), 0.8));
        assert!(near(seen.pace(1001.0, 2.0), 1.0 / 1.125));
        // A millisecond has the pace around it; before the watch there is none.
        assert!(near(seen.pace(1003.0, 0.001), 0.8));
        assert_eq!(seen.pace(999.0, 0.5), None);
        assert_eq!(seen.pace(1020.0, 0.5), None);
        assert_eq!(seen.pace(f64::NAN, 0.5), None);
    }

    #[test]
    fn a_piece_that_was_interrupted_counts_little() {
        let seen = seen(|index| if index % 100 == 7 { 1000.0 } else { 1.0 });
        assert!(seen.pace(1001.0, 5.0).unwrap() > 0.99);
    }

    #[test]
    fn a_watched_core_has_a_pace() {
        let Some(pace) = Pace::watch(0) else {
            eprintln!("skipped: no thread can be kept on a core here");
            return;
        };
        let begun = unix_time();
        std::thread::sleep(Duration::from_millis(400));
        let seen = pace.seen();
        let share = seen.pace(begun, 0.4).unwrap();
        assert!((0.5..=1.0).contains(&share), "{share}");
        assert!(seen.pace(begun - 60.0, 1.0).is_none());
    }
}
