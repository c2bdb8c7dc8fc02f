//! What else the machine does while something is measured.

use std::fs;
use std::time::Instant;

/// Looks at the processors again and again.
pub struct Noise {
    process: u32,
    last: Option<Reading>,
}

struct Reading {
    at: Instant,
    /// Ticks of all processors: busy, stolen by a hypervisor, all.
    busy: u64,
    stolen: u64,
    all: u64,
    /// Ticks of the measuring process and of the children that it has waited for.
    own: u64,
}

impl Noise {
    /// Looks beside a process.
    pub fn beside(process: u32) -> Self {
        let last = read(process);
        Self { process, last }
    }

    /// What other programs have used since the last look; empty if that is not known.
    pub fn since(&mut self) -> String {
        let now = read(self.process);
        let text = match (&self.last, &now) {
            (Some(last), Some(now)) => told(last, now),
            _ => None,
        };
        if text.is_some() {
            self.last = now;
        }
        text.unwrap_or_default()
    }
}

fn told(last: &Reading, now: &Reading) -> Option<String> {
    let all = now.all.checked_sub(last.all).filter(|all| *all > 0)? as f64;
    // Shares of less than a second say little.
    if (now.at - last.at).as_secs_f64() < 0.5 {
        return None;
    }
    let own = now.own.saturating_sub(last.own);
    let others = now.busy.saturating_sub(last.busy).saturating_sub(own);
    let percent = |ticks: u64| (100.0 * ticks as f64 / all).round();
    let mut text = format!(
        "Other programs use {} % of the processors.",
        percent(others)
    );
    let stolen = percent(now.stolen.saturating_sub(last.stolen));
    if stolen >= 1.0 {
        text += &format!(" The hypervisor took {stolen} % away.");
    }
    Some(text)
}

fn read(process: u32) -> Option<Reading> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields = stat.lines().next()?.split_whitespace().skip(1);
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is within user (proc(5)).
    let [user, nice, system, idle, iowait, irq, softirq, steal] = *fields.first_chunk::<8>()?;
    let busy = user + nice + system + irq + softirq;
    Some(Reading {
        at: Instant::now(),
        busy,
        stolen: steal,
        all: busy + idle + iowait + steal,
        own: own(process).unwrap_or(0),
    })
}

/// Ticks of a process, in the unit of `/proc/stat`.
fn own(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The command name may hold blanks and brackets: fields count from behind it.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = fields.take(4).map_while(|field| field.parse::<u64>().ok());
    Some(ticks.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn shares_are_told_of_what_passed() {
        let at = Instant::now();
        let reading = |seconds, busy, stolen, all, own| Reading {
            at: at + Duration::from_secs(seconds),
            busy,
            stolen,
            all,
            own,
        };
        let last = reading(0, 1000, 10, 5000, 100);
        let quiet = told(&last, &reading(1, 1100, 10, 5200, 200)).unwrap();
        assert_eq!(quiet, "Other programs use 0 % of the processors.");
        let loud = told(&last, &reading(1, 1150, 20, 5200, 200)).unwrap();
        assert_eq!(
            loud,
            "Other programs use 25 % of the processors. The hypervisor took 5 % away."
        );
        assert_eq!(told(&last, &last), None);
    }
}
