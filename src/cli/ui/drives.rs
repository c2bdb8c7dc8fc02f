//! Simulate the life of a drive.

use crate::cli::Failure;
use crate::cli::drive::lifetime::Question;
use crate::cli::web::{Answer, Request};
use ::drive::lifetime::{BLOCKS, FEW_BLOCKS};
use ::drive::preset::Preset;
use ::report::lifetime::Lifetime;
use ::report::window::{self, Drive};
use bytesize::ByteSize;
use lab::system::simulated::ssd;
use std::ops::ControlFlow;

/// The drive that is shown first.
const FIRST: &str = "mlc-128g";

/// The answer to a request on drives; `None` if it is about something else.
pub fn answer(request: &Request) -> Option<Result<Answer, Failure>> {
    Some(match request.path.as_str() {
        _ if request.is_form => return None,
        "drives" => live(request).map(|life| Answer::page(window::drives(&drives(), &life))),
        "life" => live(request).map(|life| Answer::page(window::life(&life))),
        _ => return None,
    })
}

/// The drives that have TRIM.
fn drives() -> Vec<Drive> {
    let drives = Preset::names().filter_map(|name| {
        Some(Drive {
            name: name.to_string(),
            title: ssd(name).ok()?.title,
        })
    });
    drives.collect()
}

/// Lives through the years that the sliders ask for.
fn live(request: &Request) -> Result<Lifetime, Failure> {
    let device = match request.field("device").as_str() {
        "" => FIRST.to_owned(),
        device => device.to_owned(),
    };
    // Only drives that ship: a path would be a file of this machine.
    if !drives().iter().any(|drive| drive.name == device) {
        let remedy = "Choose one of the list.";
        return Err(Failure::new(2, "there is no such drive", remedy));
    }
    let number = |name: &str, usual: f64, least: f64, most: f64| {
        let given = request.field(name).parse::<f64>().unwrap_or(usual);
        given.clamp(least, most)
    };
    let share = |name: &str, usual: f64| number(name, usual, 0.0, 100.0) / 100.0;
    let question = Question {
        daily: ByteSize::gb(number("daily", 20.0, 1.0, 1000.0) as u64),
        fill: share("fill", 80.0),
        overwrites: share("overwrites", 20.0),
        unpartitioned: share("unpartitioned", 10.0),
        compression: share("compression", 100.0).max(0.01),
        years: number("years", 3.0, 1.0, 10.0),
        seed: 1,
        blocks: match request.field("exact").as_str() {
            "yes" => BLOCKS,
            // A slider that moves wants its answer at once.
            _ => FEW_BLOCKS,
        },
        device,
    };
    let ssd = ssd(&question.device)?;
    let lived = question.answer(&ssd, &mut |_, _, _| ControlFlow::Continue(()))?;
    Ok(lived.expect("nobody ended it"))
}
