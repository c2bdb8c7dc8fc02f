//! `cryptmark ui`: the whole main job in a browser on this machine.
//!
//! The pages start this same program as a user would on a terminal ([`job`]), and read the runs
//! that it stores. So a page can do nothing that a command cannot.

mod choice;
mod drives;
mod job;
mod jobs;
mod measure;
mod noise;
mod tty;
mod volumes;

use super::Failure;
use super::web::{self, Answer, Request, Site, store};
use crate::cli::open_store;
use ::lab::store::Store;
use ::report::html::{self, Around, Tab};
use ::report::window::Watch;
use clap::Args;
use jobs::Jobs;
use std::sync::Arc;

/// Options of `cryptmark ui`.
#[derive(Debug, Args)]
pub struct UiOptions {
    /// The port of 127.0.0.1 to serve on; 0 is any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Ask the questions in this terminal instead, and measure
    #[arg(long, conflicts_with = "port")]
    tty: bool,
}

/// Runs the command.
pub fn run(options: UiOptions, store: Option<&str>) -> Result<(), Failure> {
    if options.tty {
        return tty::run(&Jobs::new(store)?);
    }
    let opened = open_store(store)?;
    let jobs = Arc::new(Jobs::new(store)?);
    let window = Window {
        store: Arc::new(opened),
        jobs: Arc::clone(&jobs),
    };
    let served = web::serve(window, options.port);
    // What was measured so far is stored, as after Ctrl-C on a terminal.
    jobs.stop_all();
    served
}

/// The pages.
struct Window {
    store: Arc<Store>,
    jobs: Arc<Jobs>,
}

impl Site for Window {
    fn answer(&self, request: &Request) -> Answer {
        let around = Around::Window(Tab::Measure);
        let answer = match (request.is_form, request.path.as_str()) {
            (false, "") => Ok(measure::start(&self.jobs)),
            (false, "preview") => measure::preview(&self.jobs, request),
            (true, "start") => measure::begin(&self.jobs, request),
            (false, "watch") => self.jobs.asked(request).map(|job| job.page(&self.store)),
            (false, "events") => {
                let store = Arc::clone(&self.store);
                self.jobs.asked(request).map(|job| job::follow(job, store))
            }
            (true, "pause") => self.jobs.asked(request).map(|job| {
                job.pause_or_continue();
                Answer::go_to(&job.address())
            }),
            (true, "stop") => self.jobs.asked(request).map(|job| {
                job.stop();
                Answer::go_to(&job.address())
            }),
            (true, "baseline") => self.name(request),
            _ => match volumes::answer(&self.jobs, request).or_else(|| drives::answer(request)) {
                Some(answer) => answer,
                None => Ok(self.runs(request)),
            },
        };
        answer.unwrap_or_else(|failure| {
            let (what, remedy) = (failure.what(), failure.remedy());
            Answer::refused(html::notice_in(around, what, remedy, None))
        })
    }

    fn takes_forms(&self) -> bool {
        true
    }
}

impl Window {
    /// A page of the store.
    fn runs(&self, request: &Request) -> Answer {
        let around = Around::Window(Tab::Runs);
        let page = (!request.is_form).then(|| store::page(&self.store, request, around));
        page.flatten().unwrap_or_else(|| store::no_such(around))
    }

    /// Names a run as a baseline.
    fn name(&self, request: &Request) -> Result<Answer, Failure> {
        let run = self
            .store
            .set_baseline(&request.field("name"), &request.field("id"))?;
        Ok(Answer::go_to(&Watch::report_of(&run)))
    }
}
