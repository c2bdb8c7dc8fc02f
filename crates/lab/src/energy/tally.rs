//! [`Tally`]: the readings of a sensor so far, and the joules between any two moments.

use super::gauge::Value;
use super::{Fault, REFRESHES, REFRESHES_AT_REST, Sensor};

/// Most readings that are kept. The older half is dropped then.
const KEPT: usize = 1 << 20;

/// The readings of a sensor. Times are seconds of one clock that never goes back.
#[derive(Debug)]
pub(super) struct Tally {
    sensor: Sensor,
    /// The last reading, if it can be continued.
    last: Option<(f64, Vec<Value>)>,
    points: Vec<Point>,
    faults: Vec<Failed>,
}

/// A reading.
#[derive(Clone, Debug)]
struct Point {
    at: f64,
    /// Joules since the first reading.
    joules: f64,
    /// How often each part has changed since then.
    changes: Vec<u32>,
}

/// A stretch that has no figure.
#[derive(Clone, Debug)]
struct Failed {
    from: f64,
    to: f64,
    fault: Fault,
}

/// The end of a stretch.
struct Edge {
    joules: f64,
    /// Time between the readings around it, seconds; 0 at a reading.
    gap: f64,
    /// Places of the readings before it and behind it.
    around: (usize, usize),
}

impl Tally {
    pub(super) fn new(sensor: Sensor) -> Self {
        Self {
            sensor,
            last: None,
            points: Vec::new(),
            faults: Vec::new(),
        }
    }

    pub(super) fn sensor(&self) -> &Sensor {
        &self.sensor
    }

    /// Reads the sensor at a moment after all others.
    pub(super) fn read(&mut self, at: f64) {
        let since = self.points.last().map_or(at, |point| point.at);
        let values = match self.sensor.values() {
            Ok(values) => values,
            Err(fault) => {
                self.last = None;
                return self.fail(since, at, fault);
            }
        };
        let parts = self.sensor.parts.len();
        let (mut joules, mut changes) = match self.points.last() {
            Some(point) => (point.joules, point.changes.clone()),
            None => (0.0, vec![0; parts]),
        };
        if let Some((then, before)) = &self.last {
            for (number, part) in self.sensor.parts.iter().enumerate() {
                let (before, after) = (before[number], values[number]);
                changes[number] += u32::from(before != after);
                match part.joules(before, after, at - then) {
                    Ok(more) => joules += more,
                    Err(fault) => {
                        let then = *then;
                        self.fail(then, at, fault);
                        break;
                    }
                }
            }
        } else if !self.points.is_empty() {
            // What was taken meanwhile is not known.
            self.fail(since, at, Fault::Unread);
        }
        self.last = Some((at, values));
        if self.points.len() >= KEPT {
            self.points.drain(..KEPT / 2);
        }
        self.points.push(Point {
            at,
            joules,
            changes,
        });
    }

    fn fail(&mut self, from: f64, to: f64, fault: Fault) {
        match self.faults.last_mut() {
            // The first reason counts for all that follows.
            Some(last) if last.to >= from && (fault == Fault::Unread || last.fault == fault) => {
                last.to = to;
            }
            _ => self.faults.push(Failed { from, to, fault }),
        }
    }

    /// Joules between two moments. If `works`, the machine worked meanwhile, so no part may stand
    /// still.
    ///
    /// # Errors
    /// Why they are not known.
    pub(super) fn between(&self, from: f64, to: f64, works: bool) -> Result<f64, Fault> {
        let within = |failed: &&Failed| failed.from < to && failed.to > from;
        if let Some(failed) = self.faults.iter().find(within) {
            return Err(failed.fault.clone());
        }
        let (begin, end) = (self.edge(from)?, self.edge(to)?);
        let refresh = self.sensor.refresh().max(begin.gap).max(end.gap);
        let refreshes = if works { REFRESHES } else { REFRESHES_AT_REST };
        let needed = refreshes * refresh;
        // Clocks are read with an error.
        if (to - from) * (1.0 + 1e-9) < needed {
            return Err(Fault::TooShort { needed });
        }
        if works {
            let (first, last) = (
                &self.points[begin.around.0].changes,
                &self.points[end.around.1].changes,
            );
            for (number, part) in self.sensor.parts.iter().enumerate() {
                if first[number] == last[number] {
                    let part = part.name.clone();
                    return Err(Fault::Stalled { part });
                }
            }
        }
        Ok(end.joules - begin.joules)
    }

    /// Where a stretch begins or ends; between two readings, energy grows evenly.
    fn edge(&self, at: f64) -> Result<Edge, Fault> {
        let behind = self.points.partition_point(|point| point.at < at);
        let after = self.points.get(behind).ok_or(Fault::Unread)?;
        if after.at == at {
            return Ok(Edge {
                joules: after.joules,
                gap: 0.0,
                around: (behind, behind),
            });
        }
        let earlier = behind.checked_sub(1).ok_or(Fault::Unread)?;
        let before = &self.points[earlier];
        let gap = after.at - before.at;
        let share = (at - before.at) / gap;
        Ok(Edge {
            joules: before.joules + share * (after.joules - before.joules),
            gap,
            around: (earlier, behind),
        })
    }

    /// Leaves out the optional parts that have not changed since the first reading.
    pub(super) fn leave_out_what_stands(&mut self) {
        let Some(last) = self.points.last() else {
            return;
        };
        let stands: Vec<bool> = (self.sensor.parts.iter().zip(&last.changes))
            .map(|(part, changes)| part.optional && *changes == 0)
            .collect();
        let mut stands = stands.into_iter();
        let sensor = &mut self.sensor;
        sensor.parts.retain(|_| !stands.next().unwrap_or(false));
        // Readings before have another number of parts.
        self.points.clear();
        self.faults.clear();
        self.last = None;
    }
}
