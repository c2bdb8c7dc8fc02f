//! Lives of simulated SSDs: what each way to treat TRIM writes to the flash, and how
//! long the drive lasts.

use crate::document::{Block, Cell, Column, MARKDOWN, PAGE, Row, Rows, TERMINAL, Table};
use crate::figure;
use crate::group;
use lab::record::{Interval, Life, Run, Trial, TrimPolicy};

/// Whether a run is lives of drives and nothing else.
pub(crate) fn is_sweep(run: &Run) -> bool {
    !run.trials.is_empty() && run.trials.iter().all(|trial| trial.life().is_some())
}

/// The lives of one drive in one setting, one for each policy.
struct Place<'a> {
    drive: &'a str,
    lives: Vec<(&'a Trial, &'a Life)>,
}

/// Every life once, regardless of the later use of the drive.
fn places(run: &Run) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    for trial in &run.trials {
        let Some(life) = trial.life() else {
            continue;
        };
        let drive = trial.device.model.as_deref().unwrap_or_default();
        // Trials of a place follow each other.
        let here = places.last_mut().filter(|place| {
            place.drive == drive && place.lives[0].0.load().life == trial.load().life
        });
        match here {
            None => places.push(Place {
                drive,
                lives: vec![(trial, life)],
            }),
            Some(place)
                if place
                    .lives
                    .iter()
                    .all(|(_, other)| other.policy != life.policy) =>
            {
                place.lives.push((trial, life));
            }
            Some(_) => {}
        }
    }
    places
}

impl Place<'_> {
    fn title(&self) -> String {
        format!("{}, {}", self.drive, group::setting(self.lives[0].1))
    }

    fn of(&self, policy: TrimPolicy) -> Option<&Life> {
        let found = self.lives.iter().find(|(_, life)| life.policy == policy);
        found.map(|(_, life)| *life)
    }
}

const NOTE: &str = "Flash writes are the bytes that the drive writes for each byte of the host. \
                    The drive lasts until its cells have had the erases that the maker specifies.";

/// A median, with its interval if there is one.
fn with_interval(interval: Interval) -> String {
    match interval.n {
        0 | 1 => figure::number(interval.median),
        _ => figure::interval(interval),
    }
}

fn row(trial: &Trial, life: &Life) -> Row {
    let (written, lives) = (life.write_amplification, life.write_amplification.n);
    let number = |interval: Interval| Cell::number(with_interval(interval), interval.median);
    let cells = vec![
        Cell::word(group::policy(life)),
        Cell::number(format!("{} ×", with_interval(written)), written.median),
        number(life.lifetime_years),
        number(life.terabytes_written),
        Cell::number(lives.to_string(), f64::from(lives)),
    ];
    Row::of(trial, cells)
}

/// The largest cost of blocked TRIM, in a sentence.
pub(crate) fn sentence(run: &Run) -> String {
    let places = places(run);
    let ratio = |place: &Place<'_>| {
        let (passed, worst) = (place.of(TrimPolicy::Pass)?, worst(place)?);
        Some(worst.write_amplification.median / passed.write_amplification.median)
    };
    let most = places
        .iter()
        .filter_map(|place| Some((ratio(place)?, place)))
        .filter(|(ratio, _)| ratio.is_finite())
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((ratio, place)) = most else {
        return "To see the effect of TRIM, sweep `pass` and at least one other policy.".to_owned();
    };
    // Both are there, or there would be no ratio.
    let years = |life: Option<&Life>| life.map_or(f64::NAN, |life| life.lifetime_years.median);
    let worst = worst(place);
    format!(
        "{} writes at most {} times as much to the flash as passing TRIM, on {}: that drive lasts \
         {} years instead of {}.",
        worst.map(group::policy).unwrap_or_default(),
        figure::number(ratio),
        place.title(),
        figure::number(years(worst)),
        figure::number(years(place.of(TrimPolicy::Pass))),
    )
}

/// The policy under which most is written to the flash.
fn worst<'a>(place: &'a Place<'_>) -> Option<&'a Life> {
    let others = place.lives.iter().map(|(_, life)| *life);
    others
        .filter(|life| !matches!(life.policy, TrimPolicy::Plain | TrimPolicy::Pass))
        .max_by(|a, b| {
            let written = |life: &Life| life.write_amplification.median;
            written(a).total_cmp(&written(b))
        })
}

/// The lives; nothing of other runs.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    if !is_sweep(run) {
        return Vec::new();
    }
    let columns = vec![
        Column::word("TRIM").bare(),
        Column::number("flash writes"),
        Column::number("lasts, years"),
        Column::number("TB written").until(0),
        Column::number("lives").until(0),
    ];
    let groups = places(run).into_iter().map(|place| Rows {
        title: place.title(),
        rows: place
            .lives
            .iter()
            .map(|(trial, life)| row(trial, life))
            .collect(),
        ..Rows::default()
    });
    let table = Table::new(columns, groups.collect()).grouped(Column::word("drive").on(MARKDOWN));
    vec![
        Block::heading(3, "How long the drives last").on(MARKDOWN | PAGE),
        Block::note(NOTE).on(MARKDOWN | PAGE),
        Block::table(table),
        Block::note(NOTE).on(TERMINAL),
    ]
}
