//! [`Meter`]: a sensor that is read in the background and on demand.

use super::tally::Tally;
use super::{Fault, Sensor};
use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A clock: seconds since any moment. It never goes back.
pub type Time = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Time between readings if stretches begin and end at moments that the meter learns later.
const FINE: f64 = 0.01;

/// A sensor that is read until the meter is dropped.
pub struct Meter {
    tally: Arc<Mutex<Tally>>,
    time: Time,
    stop: Option<Sender<()>>,
    reader: Option<JoinHandle<()>>,
}

/// A moment at which the sensor was read.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Mark(f64);

impl Mark {
    /// Seconds from an earlier mark to this one.
    pub fn since(self, earlier: Self) -> f64 {
        self.0 - earlier.0
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = locked(&self.tally).sensor().name().to_owned();
        to.debug_struct("Meter").field("sensor", &name).finish()
    }
}

impl Meter {
    /// Begins to read `sensor`. If `fine`, it is read every 10 ms, so that stretches can begin
    /// and end between two marks. Otherwise it is read as seldom as its counters allow.
    pub fn start(sensor: Sensor, fine: bool) -> Self {
        let begun = Instant::now();
        Self::timed(
            sensor,
            fine,
            Arc::new(move || begun.elapsed().as_secs_f64()),
        )
    }

    fn timed(sensor: Sensor, fine: bool, time: Time) -> Self {
        let longest = sensor.longest();
        let every = if fine { longest.min(FINE) } else { longest };
        let mut meter = Self::unwatched(sensor, time);
        let (stop, stopped) = mpsc::channel();
        let (tally, time) = (Arc::clone(&meter.tally), Arc::clone(&meter.time));
        let every = Duration::from_secs_f64(every);
        let read = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                read(&tally, &time);
            }
        };
        let thread = std::thread::Builder::new().name("energy".to_owned());
        // Without the thread, a counter that may have wrapped twice has no figure.
        meter.reader = thread.spawn(read).ok();
        meter.stop = Some(stop);
        meter
    }

    /// A meter that reads only when it is asked, by `time`.
    pub fn unwatched(sensor: Sensor, time: Time) -> Self {
        let tally = Arc::new(Mutex::new(Tally::new(sensor)));
        read(&tally, &time);
        Self {
            tally,
            time,
            stop: None,
            reader: None,
        }
    }

    /// The parts that are added, and where it was found.
    pub fn describe(&self) -> String {
        locked(&self.tally).sensor().describe()
    }

    /// Time from one refresh of the sensor to the next, seconds.
    pub fn refresh(&self) -> f64 {
        locked(&self.tally).sensor().refresh()
    }

    /// Reads the sensor now.
    pub fn mark(&self) -> Mark {
        Mark(read(&self.tally, &self.time))
    }

    /// Joules between two marks while the machine worked.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn between(&self, from: Mark, to: Mark) -> Result<f64, Fault> {
        locked(&self.tally).between(from.0, to.0, true)
    }

    /// The same while the machine was idle, when a number may stand still.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn between_idle(&self, from: Mark, to: Mark) -> Result<f64, Fault> {
        locked(&self.tally).between(from.0, to.0, false)
    }

    /// Joules over a stretch of work that ended `ago` seconds ago and took `seconds`. The sensor
    /// is read first.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn over(&self, ago: f64, seconds: f64) -> Result<f64, Fault> {
        let Mark(now) = self.mark();
        let end = now - ago.max(0.0);
        locked(&self.tally).between(end - seconds, end, true)
    }

    /// Leaves out the optional parts that have not moved since the start, such as a memory
    /// counter that the processor does not fill. Earlier marks have no figures from then on.
    pub fn leave_out_what_stands(&self) {
        locked(&self.tally).leave_out_what_stands();
        self.mark();
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(reader) = self.reader.take() {
            // It cannot panic, and has nothing to tell.
            let _ = reader.join();
        }
    }
}

/// Reads the sensor now; returns when that was.
fn read(tally: &Mutex<Tally>, time: &Time) -> f64 {
    let mut tally = locked(tally);
    let now = time();
    tally.read(now);
    now
}

fn locked(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
