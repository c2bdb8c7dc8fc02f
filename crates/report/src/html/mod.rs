//! Runs as one HTML file: no network, no script, light and dark, phone and print.

pub(crate) mod chart;
pub mod lifetime;
mod page;

use crate::figure;
use lab::record::Run;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The whole document.
pub fn render(runs: &[Run]) -> String {
    let title = match runs {
        [] => "What encryption costs".to_owned(),
        [run] => format!("What encryption costs: {}", run.plan),
        runs => {
            let names: Vec<&str> = runs.iter().map(|run| run.plan.as_str()).collect();
            format!("What encryption costs: {}", names.join(", "))
        }
    };
    document(
        &title,
        "",
        html! {
            h1 { "What encryption costs" }
            @if runs.is_empty() { p class="lead" { "There is no run to report on." } }
            @for run in runs { (page::article(run)) }
            (page::how_to_read())
        },
    )
}

/// A page with the style of all of them, and one of its own behind that.
fn document(title: &str, style: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Nothing may be fetched, whatever a record holds.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) (PreEscaped(style)) }
            }
            body { main { (body) } }
        }
    };
    // Escaping keeps markup out, but not what turns the words of the page round.
    let steers = |c| c != '\n' && figure::steers(c);
    let page = page.into_string();
    page.chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect()
}
