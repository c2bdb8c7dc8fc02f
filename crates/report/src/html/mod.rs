//! Runs as one HTML file: no network, light and dark, phone and print.
//!
//! The page's script sorts, filters and shows values; without it the page says
//! the same. The browser runs that script only, by its hash.

pub(crate) mod chart;
pub mod fleet;
pub mod lifetime;
mod page;
pub(crate) mod pick;
pub(crate) mod store;
pub(crate) mod table;

pub use store::{index, notice, stored};

use crate::figure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lab::record::Run;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const SCRIPT: &str = include_str!("script.js");

/// The whole document.
pub fn render(runs: &[Run]) -> String {
    document(&title(runs), Forms::None, "", &page::body(runs, html! {}))
}

fn title(runs: &[Run]) -> String {
    let plans: Vec<&str> = runs.iter().map(|run| run.plan.as_str()).collect();
    match plans.as_slice() {
        [] => "What encryption costs".to_owned(),
        plans => format!("What encryption costs: {}", plans.join(", ")),
    }
}

/// Where a page's forms may be sent.
#[derive(Clone, Copy)]
pub(crate) enum Forms {
    /// It has none.
    None,
    /// To who served the page.
    Here,
}

/// What a page may do, as browsers read it: nothing may be fetched, whatever a
/// record holds, and no script runs but the page's own.
fn policy(forms: Forms) -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    let forms = match forms {
        Forms::None => "'none'",
        Forms::Here => "'self'",
    };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; \
         base-uri 'none'; form-action {forms}"
    )
}

/// A page of `title` around `body`, with the style of all of them, and one of
/// its own behind that.
pub(crate) fn document(title: &str, forms: Forms, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy(forms));
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) (PreEscaped(style)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string();
    // Escaping keeps markup out, but not what turns the words of the page round.
    page.chars()
        .map(|c| {
            if c != '\n' && figure::steers(c) {
                ' '
            } else {
                c
            }
        })
        .collect()
}
