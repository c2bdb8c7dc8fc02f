//! Start a measurement: choose, look at what it will do, begin.

use super::choice::{Choice, about, confirms, refusal, unusable};
use super::jobs::{Jobs, Order};
use crate::cli::Failure;
use crate::cli::web::{Answer, Request};
use ::report::window::{Place, Preview, Start};
use lab::probe;

/// The first page.
pub fn start(jobs: &Jobs) -> Answer {
    let host = probe::host();
    let places = probe::places().into_iter().map(|site| Place {
        path: site.path.display().to_string(),
        about: about(&site),
        unusable: unusable(&site),
    });
    let start = Start {
        machine: format!("{}, {} cores, {}", host.cpu, host.cores, host.os),
        questions: Choice::questions(),
        places: places.collect(),
        plans: Choice::plans(),
        running: jobs.measuring(),
    };
    Answer::page(start.page())
}

fn chosen(request: &Request) -> Result<Choice, Failure> {
    let (at, other) = (request.field("at"), request.field("other"));
    let at = match other.trim() {
        "" => &at,
        other => other,
    };
    Choice::new(request.field("what"), request.field("plan"), at)
}

/// What would be done, or why it is refused.
///
/// # Errors
/// What was chosen is not there.
pub fn preview(jobs: &Jobs, request: &Request) -> Result<Answer, Failure> {
    let choice = chosen(request)?;
    let came = jobs.ask(&choice.dry_run(), None)?;
    let refused = (came.code != Some(0)).then(|| refusal(&came.errors));
    let busy = jobs.measuring().map(|(_, other)| {
        let what = format!("another measurement is under way: {other}");
        (what, "Wait for its end, or stop it.".to_owned())
    });
    let preview = Preview {
        title: choice.title(),
        will: came.out + &choice.room().unwrap_or_default(),
        command: Jobs::typed(&choice.command()),
        fields: vec![
            ("at", choice.at.display().to_string()),
            ("what", choice.what.clone()),
            ("plan", choice.plan.clone()),
        ],
        overwrites: choice.overwrites(),
        refused: refused.or(busy),
    };
    Ok(Answer::page(preview.page()))
}

/// Begins what a user has looked at.
///
/// # Errors
/// What was chosen is not there or not confirmed, or another measurement goes on.
pub fn begin(jobs: &Jobs, request: &Request) -> Result<Answer, Failure> {
    let choice = chosen(request)?;
    let mut arguments = choice.command();
    if let Some(place) = choice.overwrites() {
        if !confirms(&request.field("confirm"), &place) {
            return Err(Failure::new(
                2,
                format!("{place} would be overwritten, and its name was not typed"),
                "Go back, and type its name.",
            ));
        }
        arguments.push("--yes".into());
    }
    let job = jobs.start(Order {
        title: choice.title(),
        arguments,
        secret: None,
        kind: choice.kind(),
        pauses: choice.pauses(),
    })?;
    Ok(Answer::go_to(&job.address()))
}
