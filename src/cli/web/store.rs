//! The pages of a store: the list of its runs, one run, two compared.

use super::{Answer, Request, Site};
use crate::cli::Failure;
use ::report::compare::{self, CompareError, Options, compare};
use ::report::html::{self, Around};
use lab::store::{Store, StoreError};

/// A store that can be read.
pub struct Shelf(pub Store);

impl Site for Shelf {
    fn answer(&self, request: &Request) -> Answer {
        match request.path.as_str() {
            "" => runs(&self.0, request, Around::Store),
            _ => page(&self.0, request, Around::Store).unwrap_or_else(|| no_such(Around::Store)),
        }
    }

    fn takes_forms(&self) -> bool {
        false
    }
}

/// The page that is not there.
pub fn no_such(around: Around) -> Answer {
    Answer::not_found(html::notice_in(
        around,
        "There is no such page",
        "Go back to the list.",
        Some("./"),
    ))
}

/// The list of runs.
pub fn runs(store: &Store, request: &Request, around: Around) -> Answer {
    told(
        store
            .list()
            .map(|runs| html::index(&runs, &request.field("q"), around)),
        around,
    )
}

/// The page of the store that a request names.
pub fn page(store: &Store, request: &Request, around: Around) -> Option<Answer> {
    let id = || request.field("id");
    Some(match request.path.as_str() {
        "runs" => runs(store, request, around),
        "run" => told(
            store.load(&id()).map(|run| html::stored(&run, around)),
            around,
        ),
        "page" => match store.load(&id()) {
            Ok(run) => Answer::file(
                &format!("cryptmark-{}.html", run.run),
                html::render(std::slice::from_ref(&run)),
            ),
            Err(error) => told(Err(error), around),
        },
        "compare" => told(compared(store, request, around), around),
        _ => return None,
    })
}

/// The page, or what kept it from being made.
pub fn told(made: Result<String, StoreError>, around: Around) -> Answer {
    match made {
        Ok(page) => Answer::page(page),
        Err(error @ (StoreError::NoSuchRun { .. } | StoreError::Ambiguous { .. })) => {
            let remedy = "Choose it from the list.";
            let list = Some(around.list());
            Answer::not_found(html::notice_in(around, &error.to_string(), remedy, list))
        }
        Err(error) => {
            // Its words may name files, which are for who started the server.
            let _ = Failure::from(error).print();
            let what = "The store cannot be read";
            let remedy = "The terminal where cryptmark runs says why.";
            Answer::failed(html::notice_in(around, what, remedy, None))
        }
    }
}

fn compared(store: &Store, request: &Request, around: Around) -> Result<String, StoreError> {
    let (a, b) = (request.field("a"), request.field("b"));
    let (first, second) = (store.load(&a)?, store.load(&b)?);
    let options = Options {
        across_machines: request.field("across") == "yes",
        ..Options::default()
    };
    Ok(match compare(&first, &second, &options) {
        Ok(comparison) => compare::html(&comparison, around),
        Err(error @ CompareError::Environment { .. }) => {
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs([("a", a.as_str()), ("b", &b), ("across", "yes")])
                .finish();
            let address = format!("compare?{query}");
            let remedy = "Compare them nevertheless.";
            html::notice_in(around, &error.to_string(), remedy, Some(&address))
        }
        Err(error) => html::notice_in(around, &error.to_string(), error.remedy(), None),
    })
}
