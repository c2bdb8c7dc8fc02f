//! dm-crypt's flags: chosen only if a run has shown that they pay.

use lab::record::{Device, Interval, Run, Trial};

/// The plan that measures them, in each row with other options.
pub const FLAGS_PLAN: &str = "dm-crypt-options";

/// As the kernel names them, and as crypttab does.
const FLAGS: [(&str, &str); 4] = [
    ("no_read_workqueue", "no-read-workqueue"),
    ("no_write_workqueue", "no-write-workqueue"),
    ("same_cpu_crypt", "same-cpu-crypt"),
    ("submit_from_crypt_cpus", "submit-from-crypt-cpus"),
];

/// What a run of [`FLAGS_PLAN`] has shown on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Flags {
    /// The flags to choose, as crypttab names them; empty if none pays.
    pub names: Vec<&'static str>,
    /// Why, in one sentence.
    pub reason: String,
}

impl Flags {
    /// The flags of the row that gains most over the row without any: faster in an operation and
    /// slower in none, with intervals that do not meet. `None` if `run` measured no flags on `device`.
    pub fn shown(run: &Run, device: &Device) -> Option<Self> {
        let on = |at: &Device| (&at.kind, &at.model) == (&device.kind, &device.model);
        let is_its = |trial: &&Trial| {
            trial.system == "dm-crypt" && trial.cipher.is_some() && on(&trial.device)
        };
        let (with, without): (Vec<&Trial>, Vec<&Trial>) = run
            .trials
            .iter()
            .filter(is_its)
            .partition(|trial| trial.backend.is_some());
        let pairs = with.iter().filter_map(|row| {
            let names = names(row.backend.as_deref()?)?;
            let mut likes = without.iter().filter(|bare| is_like(row, bare));
            Some((names, *row, ratio(row)?, ratio(likes.next()?)?))
        });
        let pairs: Vec<_> = pairs.collect();
        pairs.first()?;
        let slows = |names: &[&str]| {
            let mut own = pairs.iter().filter(|(of, ..)| of == names);
            own.any(|(_, _, with, without)| with.high < without.low)
        };
        let gains = pairs.iter().filter_map(|(names, row, with, without)| {
            let least = with.low / without.high;
            (least > 1.0 && !slows(names)).then_some((names, row, least))
        });
        let best = gains.max_by(|(.., one), (.., other)| one.total_cmp(other));
        Some(match best {
            Some((names, row, least)) => Self {
                names: names.clone(),
                reason: format!(
                    "They made {} at least {:.0} % faster here, and no operation slower (run {}).",
                    row.workload,
                    (least - 1.0) * 100.0,
                    run.run
                ),
            },
            None => Self {
                names: Vec::new(),
                reason: format!("None of them was certain to pay here (run {}).", run.run),
            },
        })
    }
}

/// Nothing but flags, as crypttab names them.
fn names(options: &str) -> Option<Vec<&'static str>> {
    let name = |option| FLAGS.iter().find(|(known, _)| *known == option);
    let names = options.split(' ').map(|option| name(option).map(|it| it.1));
    names.collect()
}

/// Whether both rows do the same with the same cipher.
fn is_like(one: &Trial, other: &Trial) -> bool {
    let of = |trial: &Trial| (trial.cipher.clone(), trial.key_bits, trial.sector_bytes);
    one.workload == other.workload && of(one) == of(other)
}

/// The rate ÷ the plain one.
fn ratio(trial: &Trial) -> Option<Interval> {
    trial.overhead.as_ref().map(|overhead| overhead.ratio)
}
