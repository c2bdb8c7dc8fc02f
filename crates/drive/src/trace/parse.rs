//! Lines to requests.

use super::{Action, Entry, Fault, Format};

/// Sectors of DiskSim, MQSim and blkparse.
pub(super) const SECTOR: u64 = 512;

/// The state that is carried from line to line.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Time of the first request, as the format counts.
    first: Option<u64>,
    /// Whether any time was above 0.
    counts: bool,
    /// fio version 2 says how long to wait, and not when.
    now: u64,
    /// Which event of blkparse is a request: that it is queued (Q), or, in a trace that has only
    /// that, issued to the drive (D).
    event: Option<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Queued,
    Issued,
}

impl State {
    /// The request in a line, and the device or file that it is for; `None` if the line holds
    /// something else.
    ///
    /// A trace of MQSim whose times were 0 until now becomes one of DiskSim at the first decimal
    /// point.
    pub(super) fn parse<'a>(
        &mut self,
        format: &mut Format,
        line: &'a str,
    ) -> Result<Option<(Entry, &'a str)>, Fault> {
        if *format == Format::MqSim && time_of(line).contains('.') {
            if self.counts {
                return Err(Fault::Point);
            }
            *format = Format::DiskSim;
        }
        let entry = match *format {
            Format::Fio { version } => self.fio(version, line)?,
            Format::DiskSim => Some(five(line, 1e6)?),
            Format::MqSim => Some(five(line, 1.0)?),
            Format::Msr => Some(msr(line)?),
            Format::Blkparse => self.blkparse(line)?,
        };
        let Some((mut entry, device)) = entry else {
            return Ok(None);
        };
        self.counts |= entry.time > 0;
        let first = *self.first.get_or_insert(entry.time);
        entry.time = entry.time.checked_sub(first).ok_or(Fault::Time)?;
        let end = entry.offset.checked_add(entry.bytes).ok_or(Fault::Range)?;
        let empty = entry.bytes == 0 && entry.action != Action::Flush;
        if empty || end > i64::MAX as u64 {
            return Err(Fault::Range);
        }
        Ok(Some((entry, device)))
    }

    /// fio's documentation, "Trace file format v2" and "v3".
    fn fio<'a>(&mut self, version: u32, line: &'a str) -> Result<Option<(Entry, &'a str)>, Fault> {
        if line.starts_with("fio version ") {
            return Ok(None);
        }
        let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
        let mut time = self.now;
        if version == 3 {
            let microseconds = number("time", words.first().copied().unwrap_or_default())?;
            time = microseconds
                .checked_mul(1000)
                .ok_or(Fault::Number { name: "time" })?;
            words.remove(0);
        }
        let found = words.len();
        let [file, action, rest @ ..] = &words[..] else {
            return Err(Fault::Words { expected: 2, found });
        };
        let action = match *action {
            "read" => Action::Read,
            "write" => Action::Write,
            "trim" => Action::Discard,
            "sync" | "datasync" => Action::Flush,
            "add" | "open" | "close" => return Ok(None),
            "wait" => {
                let microseconds = number("time", rest.first().copied().unwrap_or_default())?;
                let waited = microseconds.saturating_mul(1000);
                self.now = self.now.saturating_add(waited);
                return Ok(None);
            }
            _ => return Err(Fault::Action),
        };
        if action == Action::Flush {
            return Ok(Some((flush(time), file)));
        }
        let [offset, bytes, ..] = rest else {
            return Err(Fault::Words { expected: 4, found });
        };
        let entry = Entry {
            time,
            action,
            offset: number("offset", offset)?,
            bytes: number("length", bytes)?,
        };
        Ok(Some((entry, file)))
    }

    /// blkparse(1), "DEFAULT OUTPUT": every request counts once, by the event that the first has.
    fn blkparse<'a>(&mut self, line: &'a str) -> Result<Option<(Entry, &'a str)>, Fault> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [device, _, _, time, _, event, kind, place @ ..] = &words[..] else {
            // The sums at its end.
            return Ok(None);
        };
        let event = match *event {
            "Q" => Event::Queued,
            "D" => Event::Issued,
            _ => return Ok(None),
        };
        if !device.contains(',') || *self.event.get_or_insert(event) != event {
            return Ok(None);
        }
        let time = fraction("time", time, 1e9)?;
        let action = match kind.bytes().find(|kind| b"RWD".contains(kind)) {
            Some(b'D') => Action::Discard,
            Some(b'R') => Action::Read,
            Some(_) => Action::Write,
            None if kind.contains('F') => return Ok(Some((flush(time), device))),
            None => return Ok(None),
        };
        match place {
            [sector, "+", sectors, ..] => {
                let entry = Entry {
                    time,
                    action,
                    offset: sectors_of("sector", sector)?,
                    bytes: sectors_of("number of sectors", sectors)?,
                };
                Ok(Some((entry, device)))
            }
            // A flush says that it writes, and where nothing.
            _ if kind.contains('F') => Ok(Some((flush(time), device))),
            _ => Err(Fault::Words {
                expected: 10,
                found: words.len(),
            }),
        }
    }
}

fn time_of(line: &str) -> &str {
    line.split_ascii_whitespace().next().unwrap_or_default()
}

/// DiskSim 4.0 manual, section "ASCII trace format", and MQSim's README, "Trace-based
/// workload": bit 0 of the flags is a read. A unit of time is `nanoseconds` long.
fn five(line: &str, nanoseconds: f64) -> Result<(Entry, &str), Fault> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[time, device, sector, sectors, flags] = &words[..] else {
        return Err(Fault::Words {
            expected: 5,
            found: words.len(),
        });
    };
    let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16);
    let flags = flags.map_err(|_| Fault::Number { name: "flags" })?;
    let entry = Entry {
        time: fraction("time", time, nanoseconds)?,
        action: if flags & 1 == 1 {
            Action::Read
        } else {
            Action::Write
        },
        offset: sectors_of("sector", sector)?,
        bytes: sectors_of("number of sectors", sectors)?,
    };
    Ok((entry, device))
}

/// SNIA IOTTA, "MSR Cambridge Traces": Timestamp, Hostname, DiskNumber, Type,
/// Offset, Size, ResponseTime.
fn msr(line: &str) -> Result<(Entry, &str), Fault> {
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    let [time, _, _, action, offset, bytes, ..] = &words[..] else {
        return Err(Fault::Words {
            expected: 6,
            found: words.len(),
        });
    };
    let action = match action.to_ascii_lowercase().as_str() {
        "read" => Action::Read,
        "write" => Action::Write,
        _ => return Err(Fault::Action),
    };
    let time = number("time", time)?.checked_mul(100);
    // The host and the number of its disk.
    let mut commas = line.match_indices(',').map(|(at, _)| at);
    let (first, third) = (commas.next(), commas.nth(1));
    let device = first
        .zip(third)
        .map_or(line, |(first, third)| &line[first + 1..third]);
    let entry = Entry {
        time: time.ok_or(Fault::Number { name: "time" })?,
        action,
        offset: number("offset", offset)?,
        bytes: number("length", bytes)?,
    };
    Ok((entry, device))
}

fn flush(time: u64) -> Entry {
    Entry {
        time,
        action: Action::Flush,
        offset: 0,
        bytes: 0,
    }
}

fn number(name: &'static str, word: &str) -> Result<u64, Fault> {
    word.parse().map_err(|_| Fault::Number { name })
}

fn sectors_of(name: &'static str, word: &str) -> Result<u64, Fault> {
    let sectors = number(name, word)?;
    sectors.checked_mul(SECTOR).ok_or(Fault::Number { name })
}

fn fraction(name: &'static str, word: &str, scale: f64) -> Result<u64, Fault> {
    let value: f64 = word.parse().map_err(|_| Fault::Number { name })?;
    let scaled = (value * scale).round();
    match (0.0..9e18).contains(&scaled) {
        true => Ok(scaled as u64),
        false => Err(Fault::Number { name }),
    }
}
