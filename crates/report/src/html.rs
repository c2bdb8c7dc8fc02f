//! Runs as one HTML file, and the pages for users who browse a store. These are the list of its
//! runs, one run, and error messages. [`crate::window`] has the pages of `cryptmark ui`.

pub use crate::fleet::page as fleet;
pub use crate::lifetime::page as lifetime;

use crate::document::{Block, Document};
use crate::{render as shown, run, window};
use lab::record::Run;
use lab::store::RunSummary;
use maud::{Markup, html};

/// The element by which every page names the program that wrote it.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"cryptmark\">";

/// The whole file.
pub fn render(runs: &[Run]) -> String {
    shown::html::render(&run::page(runs, None))
}

/// Which server shows a page, and so what the page leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// A store that is read.
    Store,
    /// The window, of which the page belongs to this part.
    Window(Tab),
}

/// A part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// Start and watch a measurement.
    Measure,
    /// Read what was measured.
    Runs,
    /// Look into volumes.
    Volumes,
    /// Simulate drives.
    Drives,
}

impl Around {
    /// The address of the list of runs.
    pub const fn list(self) -> &'static str {
        RUNS
    }
}

impl Tab {
    const ALL: [Self; 4] = [Self::Measure, Self::Runs, Self::Volumes, Self::Drives];

    const fn name(self) -> &'static str {
        match self {
            Self::Measure => "Measure",
            Self::Runs => "Runs",
            Self::Volumes => "Volumes",
            Self::Drives => "Drives",
        }
    }

    const fn address(self) -> &'static str {
        match self {
            Self::Measure => "./",
            Self::Runs => RUNS,
            Self::Volumes => "volumes",
            Self::Drives => "drives",
        }
    }
}

/// The address of the list of runs.
const RUNS: &str = "runs";

/// The links above every page of a server.
pub(crate) fn ways(around: Around) -> Block {
    Block::markup(match around {
        Around::Store => html! { nav { a href=(RUNS) { "All runs" } } },
        Around::Window(current) => html! {
            nav class="tabs" aria-label="Parts" {
                @for tab in Tab::ALL {
                    a href=(tab.address()) aria-current=[(tab == current).then_some("page")] { (tab.name()) }
                }
            }
        },
    })
}

/// A run's report with the ways to the other pages.
pub fn stored(run: &Run, around: Around) -> String {
    let mut page = run::page(std::slice::from_ref(run), Some(ways(around)));
    if let Around::Window(_) = around {
        page.head.push(window::beside(run));
        page.script = window::SCRIPT;
    }
    shown::html::render(&Document {
        served: true,
        ..page
    })
}

/// The address of a page about one run, from any other page of the store.
pub(crate) fn run_address(run: &str) -> String {
    let id = form_urlencoded::byte_serialize(run.as_bytes());
    format!("run?id={}", id.collect::<String>())
}

fn page(title: &str, head: Vec<Block>, body: Markup) -> String {
    scripted(title, head, body, "")
}

/// A page of a server, with a script of its own.
pub(crate) fn scripted(
    title: &str,
    head: Vec<Block>,
    body: Markup,
    script: &'static str,
) -> String {
    shown::html::render(&Document {
        title: title.to_owned(),
        served: true,
        script,
        head,
        body: vec![Block::markup(body)],
    })
}

/// The runs that hold every word of `query`, the newest first, in a form that
/// compares two of them.
pub fn index(runs: &[RunSummary], query: &str, around: Around) -> String {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let found: Vec<&RunSummary> = runs
        .iter()
        .rev()
        .filter(|run| {
            let text = searchable(run);
            words.iter().all(|word| text.contains(word))
        })
        .collect();
    let search = html! {
        form class="search" role="search" action=(RUNS) method="get" {
            label for="q" { "Search by plan, day, machine or baseline" }
            input type="search" id="q" name="q" value=(query);
            button { "Search" }
        }
        p role="status" { (count(found.len(), runs.len())) }
    };
    let body = html! {
        @if !found.is_empty() {
            form action="compare" method="get" {
                (list(&found))
                p class="send" { button { "Compare B with A" } }
            }
        }
    };
    let mut head = vec![Block::heading(1, "Runs"), Block::markup(search)];
    if let Around::Window(_) = around {
        head.insert(0, ways(around));
    }
    page("Runs", head, body)
}

fn searchable(run: &RunSummary) -> String {
    let RunSummary {
        run: id,
        plan,
        started,
        host,
        ..
    } = run;
    let remarks = remarks(run);
    format!("{id} {plan} {started} {host} {remarks}").to_lowercase()
}

fn remarks(run: &RunSummary) -> String {
    let partial = run.partial.then(|| "partial".to_owned());
    let baselines = run.baselines.iter().map(|name| format!("baseline {name}"));
    let remarks: Vec<String> = partial.into_iter().chain(baselines).collect();
    remarks.join(", ")
}

fn count(found: usize, all: usize) -> String {
    match (found, all) {
        (_, 0) => "No runs are stored yet: `cryptmark run` measures.".to_owned(),
        (0, all) => format!("None of the {all} stored runs has these words."),
        (found, all) if found == all => format!("{all} stored, the newest first."),
        (found, all) => format!("{found} of {all} stored."),
    }
}

/// The columns after the plan's.
const COLUMNS: [&str; 6] = ["Started", "Cells", "Machine", "Remarks", "A", "B"];

fn list(runs: &[&RunSummary]) -> Markup {
    // By default, the newest run is compared with the previous one of its plan.
    let alike = |run: &&RunSummary| run.plan == runs[0].plan;
    let before = runs.iter().skip(1).position(alike).map(|place| place + 1);
    html! {
        div class="scroll" { table class="runs" {
            thead { tr { @for name in ["Plan"].into_iter().chain(COLUMNS) { th scope="col" { (name) } } } }
            tbody {
                @for (place, run) in runs.iter().enumerate() {
                    tr {
                        th scope="row" { a href=(run_address(&run.run)) { (run.plan) } }
                        td data-name=(COLUMNS[0]) { (run.started) }
                        td data-name=(COLUMNS[1]) { (run.trials) }
                        td data-name=(COLUMNS[2]) { (run.host) }
                        td data-name=(COLUMNS[3]) { (remarks(run)) }
                        @for (name, chosen) in [("a", before == Some(place)), ("b", place == 0)] {
                            td data-name=(name.to_uppercase()) {
                                input type="radio" name=(name) value=(run.run) checked[chosen] required
                                    aria-label=(format!("{} {} as {}", run.plan, run.started, name.to_uppercase()));
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// A page with a message and its remedy, which is a link if `address` is given.
pub fn notice(what: &str, remedy: &str, address: Option<&str>) -> String {
    notice_in(Around::Store, what, remedy, address)
}

/// The same among the pages of a server.
pub fn notice_in(around: Around, what: &str, remedy: &str, address: Option<&str>) -> String {
    let body = html! {
        p {
            @match address {
                Some(address) => a href=(address) { (remedy) },
                None => (remedy),
            }
        }
    };
    page(what, vec![ways(around), Block::heading(1, what)], body)
}
