//! The pages that start and watch a measurement.

use super::page;
use crate::html::{Tab, run_address};
use crate::{render, run};
use lab::record::Run;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

/// A place that can be measured.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its path.
    pub path: String,
    /// What it is: the disk, its size, its file system, what encrypts it already.
    pub about: String,
    /// Why it cannot be measured now.
    pub unusable: Option<String>,
}

/// A plan that can be chosen.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it measures, in one line.
    pub title: String,
}

/// A question that can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Its name in the form.
    pub value: &'static str,
    /// The question.
    pub title: &'static str,
    /// What answers it, and how long that takes.
    pub about: &'static str,
}

/// The first page.
#[derive(Clone, Debug)]
pub struct Start {
    /// The machine in one line.
    pub machine: String,
    /// The questions, the usual one first.
    pub questions: Vec<Question>,
    /// The places, the proposed one first.
    pub places: Vec<Place>,
    /// The plans.
    pub plans: Vec<Plan>,
    /// The measurement that goes on, if one does: its number and its title.
    pub running: Option<(usize, String)>,
}

impl Start {
    /// The page.
    pub fn page(&self) -> String {
        let body = html! {
            p class="meta" { (self.machine) }
            @if let Some((job, title)) = &self.running {
                p class="lead" {
                    "A measurement is under way: " a href={ "watch?job=" (job) } { (title) } "."
                }
            }
            form id="start" action="preview" method="get" {
                fieldset {
                    legend { "Question" }
                    @for (number, question) in self.questions.iter().enumerate() {
                        label class="choice" {
                            input type="radio" name="what" value=(question.value) checked[number == 0];
                            span { strong { (question.title) } " " span class="note" { (question.about) } }
                        }
                    }
                    label class="choice" {
                        input type="radio" name="what" value="plan";
                        span { strong { "A plan" } " " span class="note" { "one of the experiments that ship" } }
                    }
                    p class="field" {
                        label for="plan" { "Plan" }
                        select id="plan" name="plan" {
                            @for plan in &self.plans {
                                option value=(plan.name) { (plan.name) ": " (plan.title) }
                            }
                        }
                    }
                }
                fieldset {
                    legend { "Place" }
                    @for (number, place) in self.places.iter().enumerate() { (place.draw(number == 0)) }
                    p class="field" {
                        label for="other" { "Or another directory, file or disk" }
                        input type="text" id="other" name="other" autocomplete="off" spellcheck="false";
                    }
                }
                p { button class="main" { "Next" } }
            }
        };
        page(Tab::Measure, "What does encryption cost here?", body)
    }
}

impl Place {
    fn draw(&self, checked: bool) -> Markup {
        html! {
            label class="choice" {
                input type="radio" name="at" value=(self.path) checked[checked] disabled[self.unusable.is_some()];
                span {
                    strong { (self.path) } " " span class="note" { (self.about) }
                    @if let Some(why) = &self.unusable { " " span class="note" { "Not usable: " (why) "." } }
                }
            }
        }
    }
}

/// What would be done, before it is done.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The question.
    pub title: String,
    /// What is measured, what is written and how long it takes, in lines.
    pub will: String,
    /// The command that does the same in a terminal.
    pub command: String,
    /// The fields that the first page sent, as they are sent on.
    pub fields: Vec<(&'static str, String)>,
    /// What is overwritten: it must be named once more.
    pub overwrites: Option<String>,
    /// Why it is refused: what is wrong, and what to do.
    pub refused: Option<(String, String)>,
}

impl Preview {
    /// The page.
    pub fn page(&self) -> String {
        let body = html! {
            @match &self.refused {
                Some((what, remedy)) => {
                    p class="refused lead" role="alert" { (what) br; (remedy) }
                    p { a href="./" { "Choose again" } }
                }
                None => {
                    pre id="will" tabindex="0" aria-label="What will be done" { (self.will) }
                    form id="begin" action="start" method="post" {
                        @for (name, value) in &self.fields { input type="hidden" name=(name) value=(value); }
                        @if let Some(path) = &self.overwrites {
                            p class="refused" { "This overwrites " strong { (path) } ". All its data will be lost." }
                            p class="field" {
                                label for="confirm" { "Type its name to confirm" }
                                input type="text" id="confirm" name="confirm" required autocomplete="off" spellcheck="false";
                            }
                        }
                        p { button class="main" { "Start" } " " a href="./" { "Choose again" } }
                    }
                }
            }
            p class="note" { "The same in a terminal: " code id="command" { (self.command) } }
        };
        page(Tab::Measure, &self.title, body)
    }
}

/// A measurement or another long command, as it is now. The page shows it, and later events
/// replace its parts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Watch {
    /// Its number.
    pub job: usize,
    /// The question.
    #[serde(skip)]
    pub title: String,
    /// The command in a terminal.
    #[serde(skip)]
    pub command: String,
    /// Whether its parts belong to the volumes.
    #[serde(skip)]
    pub of_volumes: bool,
    /// Whether it can be paused.
    #[serde(skip)]
    pub pauses: bool,
    /// The state: Waiting, Measuring, Paused, Stopping, Done, Stopped, Failed.
    pub state: &'static str,
    /// Whether it has ended.
    pub ended: bool,
    /// What is done now.
    pub step: String,
    /// How much is done of `total`.
    pub done: u64,
    /// All of it; 0 if that is not known.
    pub total: u64,
    /// The time since the start and the time left, in words.
    pub left: String,
    /// What else the machine does.
    pub noise: String,
    /// What the command printed.
    pub messages: String,
    /// The answer so far, as a part of the page; `None` if it has not changed.
    pub answer: Option<String>,
    /// The stored run, once it has ended.
    pub run: Option<String>,
    /// The address of its report.
    pub report: Option<String>,
}

impl Watch {
    /// The address of the report of a run.
    pub fn report_of(run: &str) -> String {
        run_address(run)
    }

    /// The page.
    pub fn page(&self) -> String {
        let tab = if self.of_volumes {
            Tab::Volumes
        } else {
            Tab::Measure
        };
        let share = (self.total > 0).then(|| self.done.min(self.total));
        let body = html! {
            div id="watch" data-job=(self.job) data-ended[self.ended] {
                p id="state" role="status" { (self.state) }
                progress id="progress" aria-label="Progress" max=[share.map(|_| self.total)] value=[share] hidden[self.ended] {}
                p id="step" class="meta" { (self.step) }
                p id="left" { (self.left) }
                p id="noise" class="note" { (self.noise) }
                div class="buttons" hidden[self.ended] {
                    @if self.pauses {
                        form id="pause" action="pause" method="post" {
                            input type="hidden" name="job" value=(self.job);
                            button { @if self.state == "Paused" { "Continue" } @else { "Pause" } }
                        }
                    }
                    form id="stop" action="stop" method="post" {
                        input type="hidden" name="job" value=(self.job);
                        button { "Stop" }
                    }
                }
                p { a id="report" class="main" href=[self.report.as_ref()] hidden[self.report.is_none()] { "Read the report" } }
                div id="answer" { (PreEscaped(self.answer.as_deref().unwrap_or_default())) }
                pre id="messages" tabindex="0" aria-label="Messages" hidden[self.messages.is_empty()] { (self.messages) }
                p class="note" { "The same in a terminal: " code id="command" { (self.command) } }
            }
        };
        page(tab, &self.title, body)
    }
}

/// The answer that a run gives so far, as a part of a page.
pub fn so_far(run: &Run) -> String {
    // It is no wonder that a run is not whole while it goes on.
    let run = Run {
        partial: false,
        ..run.clone()
    };
    let part = html! { h2 { "Answer" } (render::html::blocks(&run::so_far(&run))) };
    render::html::harmless(&part.into_string())
}
