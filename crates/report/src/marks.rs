//! Scores that other programs compute from rates, next to those of a document. The section also
//! states whether the machine was prepared as such a comparison requires.

use crate::chart::bars::{Bar, Bars};
use crate::chart::{Chart, Label, Plot, palette};
use crate::document::{Block, Figure};
use crate::figure;
use crate::group::{self, Names};
use crate::run::WHISKERS;
use lab::record::{Interval, Mark, NoiseVerdict, Run, Tier, Trial};
use lab::stats::{self, Looks};
use std::collections::BTreeSet;

/// Load from which on something else was at work, for each core.
const BUSY: f64 = 0.25;

/// Share of a file system above which the place of a file says much.
const ALMOST_FULL: f64 = 0.9;

/// Repetitions below which a score may be a moment's.
const ENOUGH: u32 = 3;

/// Memory in bytes below which a machine may swap during the run.
const LITTLE_MEMORY: u64 = 1 << 30;

/// The scores with a picture each, and the preparation; empty if a run has no scores.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (mark, scores) in marks(run) {
        let bars = scores.iter().map(|score| {
            let (points, trial) = (score.points, score.trial);
            let tip = format!("{}: {}", score.label, figure::interval(points));
            let label = Label::of(trial, &score.label, figure::number(points.median), tip);
            Bar::whole(label, Some(points), palette::of(trial))
        });
        let figure = Figure {
            title: mark.name.clone(),
            note: "higher is better".to_owned(),
            chart: Chart::new(&mark.name, WHISKERS, Plot::Bars(Bars::of(bars))),
        };
        blocks.push(Block::heading(3, heading(mark)));
        blocks.push(Block::charts(vec![figure]));
        blocks.push(Block::list(scores.iter().map(|score| score.sentence(mark))));
    }
    if !blocks.is_empty() {
        blocks.extend([Block::heading(3, "Preparation"), Block::list(checks(run))]);
    }
    blocks
}

/// The score of a system.
struct Score<'a> {
    trial: &'a Trial,
    label: String,
    points: Interval,
    /// ÷ plain's, repetition by repetition; `None` of plain.
    ratio: Option<Interval>,
}

fn heading(mark: &Mark) -> String {
    let published = mark
        .published
        .map_or_else(String::new, |points| format!("; published {points}"));
    format!("{} ({}{published})", mark.name, mark.source)
}

/// The scores with the systems that have every rate that they are made of.
fn marks<'a>(run: &'a Run) -> Vec<(&'a Mark, Vec<Score<'a>>)> {
    let names = Names::of(&run.trials);
    let mut known = BTreeSet::new();
    let is_new = |trial: &&Trial| {
        !group::is_again(trial) && known.insert((trial.setup(), trial.load().place))
    };
    let systems: Vec<&Trial> = run.trials.iter().filter(is_new).collect();
    let all = |mark: &Mark| -> Vec<Score<'a>> {
        let score = |system: &&'a Trial| {
            let own = points(run, mark, system)?;
            let place = system.load().place;
            let is_its_plain =
                |plain: &&&Trial| group::is_plain(plain) && plain.load().place == place;
            let plain = systems.iter().find(is_its_plain);
            let plain = plain.filter(|_| !group::is_plain(system));
            let plain = plain.and_then(|plain| points(run, mark, plain));
            Some(Score {
                trial: system,
                label: names.setup(system),
                // A record does not say whether how it went on decided when it ended.
                ratio: plain.and_then(|plain| Looks::Always.ratio(&stats::ratios(&own, &plain))),
                points: Looks::Always.interval(&own)?,
            })
        };
        systems.iter().filter_map(score).collect()
    };
    let marks = run.marks.iter().map(|mark| (mark, all(mark)));
    marks.filter(|(_, scores)| !scores.is_empty()).collect()
}

/// The score of every repetition.
fn points(run: &Run, mark: &Mark, system: &Trial) -> Option<Vec<f64>> {
    let mut points: Option<Vec<f64>> = None;
    let (setup, place) = (system.setup(), system.load().place);
    for (workload, weight) in &mark.weights {
        let is_its = |trial: &&Trial| {
            let is_asked = trial.workload == *workload && !group::is_again(trial);
            is_asked && trial.setup() == setup && trial.load().place == place
        };
        let trial = run.trials.iter().find(is_its)?;
        let rates = trial.samples_mb_s.iter().map(|rate| rate * weight);
        points = Some(match points {
            None => rates.collect(),
            Some(sum) => sum
                .iter()
                .zip(rates)
                .map(|(sum, more)| sum + more)
                .collect(),
        });
    }
    points
}

impl Score<'_> {
    /// `AES-256 XTS: 153 (150–155), slower by …; of the whole suite −1.9 %`.
    fn sentence(&self, mark: &Mark) -> String {
        let mut text = format!("{}: {}", self.label, figure::interval(self.points));
        let Some(ratio) = self.ratio else {
            return text;
        };
        text += &format!("; ÷ plain {}", figure::ratio(ratio));
        if let Some(share) = mark.share {
            let change = |ratio: f64| (ratio - 1.0) * share * 100.0;
            let published = mark
                .published_loss
                .map_or_else(String::new, |loss| format!("; published {loss:+.1} %"));
            text += &format!(
                "; for the whole suite, in which this test weighs {:.0} %, {:+.1} % ({:+.1} to \
                 {:+.1}){published}",
                share * 100.0,
                change(ratio.median),
                change(ratio.low),
                change(ratio.high)
            );
        }
        text
    }
}

/// The whitepaper's pretest preparations, as far as a record knows of them.
fn checks(run: &Run) -> Vec<String> {
    let check = |holds: Option<bool>, what: String| {
        let word = match holds {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "not known",
        };
        format!("{word}: {what}")
    };
    let host = &run.host;
    let storage = || run.trials.iter().filter(|trial| trial.tier == Tier::Block);
    let load = host.load_average;
    let in_use = storage().find_map(|trial| trial.device.in_use);
    let least = storage().map(|trial| trial.repetitions).min();
    let quiet = match run.noise.verdict {
        NoiseVerdict::Quiet => Some(true),
        NoiseVerdict::Noisy => Some(false),
        NoiseVerdict::Unknown => None,
    };
    vec![
        check(
            load.map(|load| load < BUSY * f64::from(host.cores.max(1))),
            match load {
                Some(load) => {
                    format!("other programs are stopped (load {load:.2} before it began)")
                }
                None => "other programs are stopped".to_owned(),
            },
        ),
        check(
            quiet,
            "nothing else used the machine meanwhile (plain equals itself)".to_owned(),
        ),
        check(None, "no virus scanner looks at the files".to_owned()),
        check(
            in_use.map(|share| share < ALMOST_FULL),
            match in_use {
                Some(share) => format!(
                    "the disk is not almost full ({:.0} % in use)",
                    share * 100.0
                ),
                None => "the disk is not almost full".to_owned(),
            },
        ),
        check(
            Some(!storage().any(|trial| trial.system.starts_with("path:"))),
            "plain and encrypted are measured at the same place on the disk".to_owned(),
        ),
        check(
            least.map(|least| least >= ENOUGH),
            format!("it was repeated ({} times)", least.unwrap_or_default()),
        ),
        check(
            (host.memory > 0).then_some(host.memory >= LITTLE_MEMORY),
            format!("there is enough memory ({})", figure::bytes(host.memory)),
        ),
    ]
}
