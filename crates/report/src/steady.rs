//! Rounds until a steady state: how many each test took, and whether what it
//! tracks became steady.

use crate::figure;
use crate::group;
use crate::html::chart::rounds::{self, Curve};
use crate::markdown::escape;
use crate::text::Style;
use lab::record::{Conditioning, Run, Trial};
use lab::stats::{STEADY_ROUNDS, Steady};
use maud::{Markup, html};

/// Lines for a terminal; none where a run was not prepared.
pub(crate) fn text(run: &Run, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(conditioning) = &run.conditioning else {
        return lines;
    };
    style.wrap(
        &mut lines,
        &format!("Steady state: {}", prepared(conditioning)),
    );
    for (name, tracked) in tests(run, conditioning) {
        style.wrap(&mut lines, &format!("  {name}"));
        for trial in tracked {
            style.wrap(&mut lines, &format!("    {}", outcome(trial)));
        }
    }
    lines
}

/// The same as a section in Markdown.
pub(crate) fn markdown(run: &Run) -> String {
    let Some(conditioning) = &run.conditioning else {
        return String::new();
    };
    let mut out = format!(
        "\n## Steady state\n\n{}\n\n",
        escape(&figure::capitalised(&prepared(conditioning)))
    );
    for (name, tracked) in tests(run, conditioning) {
        for trial in tracked {
            out.push_str(&format!(
                "* {}: {}\n",
                escape(name),
                escape(&outcome(trial))
            ));
        }
    }
    out
}

/// The same as a section of the page, with a picture a test.
pub(crate) fn html(run: &Run) -> Option<Markup> {
    let conditioning = run.conditioning.as_ref()?;
    let pictures: Vec<(&str, Vec<&Trial>, Option<Markup>)> = tests(run, conditioning)
        .map(|(name, tracked)| {
            let curves: Vec<Curve<'_>> = tracked.iter().copied().map(curve).collect();
            let picture =
                rounds::render(&format!("{name}, round by round"), &curves, STEADY_ROUNDS);
            (name, tracked, picture)
        })
        .collect();
    Some(html! {
        section {
            h3 { "Steady state" }
            p class="note" { (figure::capitalised(&prepared(conditioning))) }
            div class="charts" {
                @for (name, _, picture) in &pictures {
                    @if let Some(picture) = picture {
                        figure {
                            figcaption { strong { (name) } ", MB/s by round" }
                            (picture)
                        }
                    }
                }
            }
            @for (name, tracked, _) in &pictures {
                p { strong { (name) } }
                ul { @for trial in tracked { li { (outcome(trial)) } } }
            }
        }
    })
}

fn curve(trial: &Trial) -> Curve<'_> {
    Curve {
        name: cell(trial),
        trial,
        rates: &trial.samples_mb_s,
    }
}

fn cell(trial: &Trial) -> String {
    format!("{}, {}", trial.workload, group::label(trial))
}

fn prepared(conditioning: &Conditioning) -> String {
    let purged = match conditioning.purged {
        Some(true) => "all was discarded",
        Some(false) => "the device takes no discards, so it was not purged",
        None => "nothing was prepared yet",
    };
    format!(
        "before each test {purged}, then the extent was written {} times in order; rounds went on until the last {STEADY_ROUNDS} of what is tracked \
         lay within 20 % of their mean and drifted by 10 % at most (SNIA PTS).",
        conditioning.precondition
    )
}

/// Each test with the cells that decide it.
fn tests<'a>(
    run: &'a Run,
    conditioning: &'a Conditioning,
) -> impl Iterator<Item = (&'a str, Vec<&'a Trial>)> {
    conditioning.tests.iter().map(|test| {
        let decides = |trial: &&Trial| test.tracked.contains(&trial.workload);
        let tracked = run.trials.iter().filter(decides).collect();
        (test.name.as_str(), tracked)
    })
}

/// `iops-4k-write, plain: steady after 9 rounds (within 4 %, drift 1 %)`.
fn outcome(trial: &Trial) -> String {
    let rates = &trial.samples_mb_s;
    let rounds = rates.len();
    let cell = cell(trial);
    let Some(steady) = Steady::of(rates) else {
        return format!("{cell}: not judged, with {rounds} rounds");
    };
    let state = match steady.reached() {
        true => "steady",
        false => "NOT steady",
    };
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let last = &rates[rounds.saturating_sub(STEADY_ROUNDS)..];
    format!(
        "{cell}: {state} after {rounds} rounds (within {:.0} %, drift {:.0} %), {} MB/s; the first round {}",
        steady.range * 100.0,
        steady.drift * 100.0,
        figure::number(mean(last)),
        figure::number(rates[0])
    )
}
