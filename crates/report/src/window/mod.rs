//! The pages of `cryptmark ui`: start and watch a measurement, look into volumes, simulate drives.
//!
//! The program that serves them says what is there and what happened. Runs and comparisons have
//! the pages that a store has ([`crate::html`]).

mod measure;
mod volumes;

pub use measure::{Place, Plan, Preview, Question, Start, Watch, so_far};
pub use volumes::{Entry, Outcome, Volume, Volumes, files};

use crate::document::Block;
use crate::html::{self, Around, Tab, ways};
use crate::lifetime::{self, Lifetime};
use crate::render;
use lab::record::Run;
use maud::{Markup, html};

/// The script of the pages that change by themselves. Every page says the same without it.
pub(crate) const SCRIPT: &str = include_str!("script.js");

fn page(tab: Tab, title: &str, body: Markup) -> String {
    let head = vec![ways(Around::Window(tab)), Block::heading(1, title)];
    html::scripted(title, head, body, SCRIPT)
}

/// What stands beside a run's report: the page as a file, and a name to compare others with.
pub(crate) fn beside(run: &Run) -> Block {
    Block::markup(html! {
        div class="beside" {
            a id="page" href={ "page?" (query(&[("id", &run.run)])) } { "Save this page as a file" }
            form id="name" action="baseline" method="post" {
                input type="hidden" name="id" value=(run.run);
                label for="as" { "Name it as a baseline" }
                input type="text" id="as" name="name" required;
                button { "Name" }
            }
        }
    })
}

/// Names and values as the end of an address.
fn query(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

/// A drive that can be simulated.
pub struct Drive {
    /// Its name.
    pub name: String,
    /// The drive in one line.
    pub title: String,
}

/// The word on a first look.
const COARSE: &str = "A first look, with fewer blocks. Press Simulate for exact figures.";

/// The page on which a drive's life is simulated, with the first life that it shows.
pub fn drives(drives: &[Drive], first: &Lifetime) -> String {
    let sliders = [
        Slider {
            name: "daily",
            label: "Written a day",
            unit: "GB",
            least: 1,
            most: 200,
            value: first.daily_bytes / 1_000_000_000,
        },
        Slider {
            name: "fill",
            label: "File system in use",
            unit: "%",
            least: 10,
            most: 95,
            value: percent(first.fill),
        },
        Slider {
            name: "overwrites",
            label: "Writes within files",
            unit: "%",
            least: 0,
            most: 100,
            value: percent(first.overwrites),
        },
        Slider {
            name: "unpartitioned",
            label: "Left unpartitioned",
            unit: "%",
            least: 1,
            most: 50,
            value: percent(first.unpartitioned),
        },
        Slider {
            name: "compression",
            label: "Plain data, compressed to",
            unit: "%",
            least: 10,
            most: 100,
            value: percent(first.compression),
        },
        Slider {
            name: "years",
            label: "Years to simulate",
            unit: "years",
            least: 1,
            most: 10,
            value: first.years as u64,
        },
    ];
    let body = html! {
        p { "The drive is simulated: nothing is written to a disk. Move a slider, and the years are lived anew." }
        form id="drive" action="drives" method="get" {
            p class="field" {
                label for="device" { "Drive" }
                select id="device" name="device" {
                    @for drive in drives {
                        option value=(drive.name) selected[drive.name == first.device] { (drive.title) }
                    }
                }
            }
            div class="sliders" { @for slider in &sliders { (slider.draw()) } }
            button { "Simulate" }
        }
        p id="living" role="status" class="note" data-coarse=(COARSE) { (COARSE) }
        div id="life" { (lifetime::part(first)) }
    };
    page(Tab::Drives, "What encryption does to an SSD", body)
}

/// The life of a drive, as a part of its page.
pub fn life(record: &Lifetime) -> String {
    render::html::harmless(&lifetime::part(record).into_string())
}

fn percent(share: f64) -> u64 {
    (share * 100.0).round() as u64
}

/// A number that a user moves.
struct Slider {
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    least: u64,
    most: u64,
    value: u64,
}

impl Slider {
    fn draw(&self) -> Markup {
        html! {
            p class="field" {
                label for=(self.name) { (self.label) }
                input type="range" id=(self.name) name=(self.name) min=(self.least) max=(self.most) value=(self.value);
                output for=(self.name) data-unit=(self.unit) { (self.value) " " (self.unit) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "/x/<script>alert(1)</script>\"'&\u{202e}";

    /// Names of files and messages of commands are text, wherever they stand.
    #[test]
    fn names_and_messages_are_only_text() {
        let hostile = || HOSTILE.to_owned();
        let place = Place {
            path: hostile(),
            about: hostile(),
            unusable: Some(hostile()),
        };
        let start = Start {
            machine: hostile(),
            questions: Vec::new(),
            places: vec![place],
            plans: vec![Plan {
                name: hostile(),
                title: hostile(),
            }],
            running: Some((1, hostile())),
        };
        let preview = |refused| Preview {
            title: hostile(),
            will: hostile(),
            command: hostile(),
            fields: vec![("at", hostile())],
            overwrites: Some(hostile()),
            refused,
        };
        let watch = Watch {
            title: hostile(),
            command: hostile(),
            step: hostile(),
            messages: hostile(),
            report: Some(Watch::report_of(HOSTILE)),
            ..Watch::default()
        };
        let entry = Entry {
            path: hostile(),
            name: hostile(),
            about: hostile(),
            is_folder: true,
        };
        let outcome = || Outcome {
            well: false,
            text: hostile(),
        };
        let volume = Volume {
            path: hostile(),
            info: outcome(),
            outcome: Some(outcome()),
            folder: hostile(),
        };
        let volumes = Volumes {
            status: hostile(),
            folders: vec![entry.clone()],
        };
        for page in [
            start.page(),
            preview(None).page(),
            preview(Some((hostile(), hostile()))).page(),
            watch.page(),
            volume.page(),
            volumes.page(),
            files(HOSTILE, Some(HOSTILE), &[entry], true),
        ] {
            // The page's own scripts are the only ones.
            assert_eq!(page.matches("<script>").count(), 2, "{page}");
            assert!(!page.contains("alert(1)</script>") && !page.contains('\u{202e}'));
            assert!(page.contains("&lt;script&gt;"), "{page}");
            assert_eq!(page.matches("<h1>").count(), 1);
        }
    }
}
