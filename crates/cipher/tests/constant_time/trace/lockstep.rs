//! The comparison of several children's recordings.

use std::fmt;

use super::step::{self, Recording};

/// The result of the comparison.
pub enum Traces {
    /// The same instructions, which touched the same addresses and divided the
    /// same numbers.
    Same { steps: u64 },
    /// Something else.
    Differ {
        /// How many steps they were together.
        steps: usize,
        /// Where the first difference is: a file, and an address in it.
        place: String,
        /// Whether they came to different instructions from there.
        branched: bool,
    },
}

impl fmt::Display for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same { steps } => write!(f, "{steps} steps alike"),
            Self::Differ {
                steps,
                place,
                branched,
            } => {
                let what = match branched {
                    true => "a branch",
                    false => "an address or a division",
                };
                write!(
                    f,
                    "{what} that depends on a secret at {place} or soon after, after {steps} steps"
                )
            }
        }
    }
}

/// Room for what children do.
pub struct Recordings(Vec<Recording>);

impl Recordings {
    /// For so many at once.
    pub fn new(children: usize) -> Self {
        step::prepare();
        Self((0..children).map(|_| Recording::new()).collect())
    }

    /// Does `work` in as many children as there are `secrets`, giving each its
    /// number, and compares what they did between [`step::begin`] and
    /// [`step::end`].
    ///
    /// # Panics
    ///
    /// If a child does not do all of its work, or runs an instruction that is
    /// not known.
    pub fn compare(&mut self, secrets: usize, work: impl Fn(u64)) -> Traces {
        let recordings = &mut self.0[..secrets];
        // Nothing else is allocated until the last child is there.
        let mut children = Vec::with_capacity(secrets);
        for (number, recording) in recordings.iter_mut().enumerate() {
            children.push(recording.made_by(|| work(number as u64)));
        }
        // All of them have ended before one is looked at.
        let done = children.into_iter().map(|child| child.ends_well());
        let done: Vec<bool> = done.collect();
        for (recording, is_done) in recordings.iter().zip(done) {
            if let Some(address) = recording.fault() {
                panic!("an instruction that cannot be copied at {}", place(address));
            }
            assert!(is_done, "a child did not do its work");
        }
        let (first, others) = recordings.split_first().expect("a secret");
        let differences = others.iter().filter_map(|other| difference(first, other));
        let earliest = differences.min_by_key(|traces| match traces {
            Traces::Differ { steps, .. } => *steps,
            Traces::Same { .. } => usize::MAX,
        });
        earliest.unwrap_or(Traces::Same {
            steps: first.total().0,
        })
    }
}

fn difference(first: &Recording, other: &Recording) -> Option<Traces> {
    if first.total() == other.total() && first.kept() == other.kept() {
        return None;
    }
    let both = || first.kept().iter().zip(other.kept());
    let steps = both().take_while(|(a, b)| a == b).count();
    let (place, branched) = match both().nth(steps) {
        Some((a, b)) if a.address == b.address => (place(a.address), false),
        _ => match steps.checked_sub(1).and_then(|last| first.kept().get(last)) {
            Some(last) if steps < step::KEPT => (place(last.address), true),
            _ => ("a place that was not kept".to_owned(), false),
        },
    };
    Some(Traces::Differ {
        steps,
        place,
        branched,
    })
}

/// A place as `addr2line -e FILE` takes it. This process has the files of its children at the same
/// addresses.
fn place(address: u64) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let parsed = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let bound = |digits| u64::from_str_radix(digits, 16).ok();
        let file = line.find('/').map(|at| line[at..].to_owned())?;
        Some((bound(start)?..bound(end)?, file))
    };
    let maps: Vec<_> = maps.lines().filter_map(parsed).collect();
    let Some((_, file)) = maps.iter().find(|(range, _)| range.contains(&address)) else {
        return format!("{address:#x}");
    };
    let of_file = maps.iter().filter(|(_, other)| other == file);
    let base = of_file.map(|(range, _)| range.start).min().unwrap_or(0);
    let name = file.rsplit('/').next().unwrap_or(file);
    format!("{name}+{:#x}", address - base)
}
