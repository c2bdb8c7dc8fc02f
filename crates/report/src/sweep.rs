//! Lives of simulated SSDs: what each way to treat TRIM writes to the flash, and how
//! long the drive lasts.

use crate::figure;
use crate::group;
use crate::html::table::{self, Cell};
use crate::markdown::escape;
use crate::text::Style;
use comfy_table::CellAlignment;
use lab::record::{Interval, Life, Run, Trial, TrimPolicy};
use maud::{Markup, html};

/// Whether a run is lives of drives and nothing else.
pub(crate) fn is_sweep(run: &Run) -> bool {
    !run.trials.is_empty() && run.trials.iter().all(|trial| trial.life.is_some())
}

/// The lives of one drive in one setting, one for each policy.
struct Place<'a> {
    drive: &'a str,
    lives: Vec<(&'a Trial, &'a Life)>,
}

/// Every life once, whatever was done with the drive afterwards.
fn places(run: &Run) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    for trial in &run.trials {
        let Some(life) = trial.life.as_deref() else {
            continue;
        };
        let drive = trial.device.model.as_deref().unwrap_or_default();
        // Trials of a place follow each other.
        let here = places
            .last_mut()
            .filter(|place| place.drive == drive && group::lives_alike(place.lives[0].0, trial));
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

const COLUMNS: [&str; 4] = ["flash writes", "lasts, years", "TB written", "lives"];

const NOTE: &str = "Flash writes are what the drive writes for each byte of the host; it lasts until its cells have had the \
     erases that their maker gives them.";

/// A median, with its interval where there is one.
fn with_interval(interval: Interval) -> String {
    match interval.n {
        0 | 1 => figure::number(interval.median),
        _ => figure::interval(interval),
    }
}

fn cells(life: &Life) -> [String; 4] {
    [
        format!("{} ×", with_interval(life.write_amplification)),
        with_interval(life.lifetime_years),
        with_interval(life.terabytes_written),
        life.write_amplification.n.to_string(),
    ]
}

/// What blocked TRIM costs where it costs most, in a sentence.
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
        return "A sweep that has pass and another policy tells what TRIM is worth.".to_owned();
    };
    // Both are there, or there would be no ratio.
    let years = |life: Option<&Life>| life.map_or(f64::NAN, |life| life.lifetime_years.median);
    let worst = worst(place);
    format!(
        "{} writes at most {} times as much to the flash as passing TRIM, on {}: that drive lasts {} years and not {}.",
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

/// The lives on a terminal; nothing of other runs.
pub(crate) fn text(run: &Run, style: &Style) -> Vec<String> {
    if !is_sweep(run) {
        return Vec::new();
    }
    let mut table = style.table(&["", COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3]]);
    for (number, place) in places(run).iter().enumerate() {
        if number > 0 {
            table.add_row([""]);
        }
        table.add_row([style.text(&place.title())]);
        for (_, life) in &place.lives {
            let name = style.text(&format!("  {}", group::policy(life)));
            let cells = cells(life).map(|cell| style.text(&cell));
            table.add_row(std::iter::once(name).chain(cells));
        }
    }
    for column in 1..=COLUMNS.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines: Vec<String> = table.lines().map(|l| l.trim_end().to_owned()).collect();
    if lines
        .iter()
        .any(|line| line.chars().count() > style.columns())
    {
        lines = stacked(run, style);
    }
    lines.push(String::new());
    style.wrap(&mut lines, NOTE);
    lines
}

/// No table, for what is too narrow.
fn stacked(run: &Run, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for place in places(run) {
        style.wrap(&mut lines, &place.title());
        for (_, life) in &place.lives {
            let [written, years, ..] = cells(life);
            let policy = group::policy(life);
            style.wrap(
                &mut lines,
                &format!("  {policy}: flash writes {written}, lasts {years} years"),
            );
        }
    }
    lines
}

/// The lives as a section in Markdown.
pub(crate) fn markdown(run: &Run) -> String {
    if !is_sweep(run) {
        return String::new();
    }
    let mut out = format!(
        "\n## How long the drives last\n\n{}\n\n| drive | TRIM | {} |\n|---|---|---:|---:|---:|---:|\n",
        escape(NOTE),
        COLUMNS.join(" | ")
    );
    for place in places(run) {
        for (_, life) in &place.lives {
            let cells = cells(life).map(|cell| escape(&cell));
            out.push_str(&format!(
                "| {} | {} | {} |\n",
                escape(&place.title()),
                escape(&group::policy(life)),
                cells.join(" | ")
            ));
        }
    }
    out
}

/// The lives as a section of the page.
pub(crate) fn html(run: &Run) -> Option<Markup> {
    is_sweep(run).then(|| {
        html! {
            section {
                h3 { "How long the drives last" }
                p class="note" { (NOTE) }
                div class="scroll" { table class="sorts" {
                    (table::head(std::iter::once("TRIM").chain(COLUMNS)))
                    @for place in places(run) {
                        tbody {
                            (table::group(COLUMNS.len() + 1, html! { (place.title()) }))
                            @for (trial, life) in &place.lives {
                                (table::row(trial, None, html! { (group::policy(life)) }, COLUMNS, &sorted(life)))
                            }
                        }
                    }
                } }
            }
        }
    })
}

fn sorted(life: &Life) -> Vec<Cell> {
    let values = [
        life.write_amplification.median,
        life.lifetime_years.median,
        life.terabytes_written.median,
        f64::from(life.write_amplification.n),
    ];
    let cells = cells(life).into_iter().zip(values);
    cells
        .map(|(text, value)| Cell::number(text, value))
        .collect()
}
