//! A proposal on a terminal.

use super::{Proposal, reason};
use crate::document::{Block, Document};
use crate::figure;
use crate::render::{self, text::Style};
use lab::record::Run;

/// The answer first, then the set-up with its reasons, what it costs, what else
/// there is, and the commands; `check` is the command that measures it.
pub fn text(proposal: &Proposal, run: &Run, check: &str, style: &Style) -> String {
    let head = vec![Block::lead(&proposal.answer), Block::gap()];
    let mut body = vec![Block::meta(figure::machine(run))];
    body.extend(figure::devices(run).into_iter().map(Block::meta));
    body.push(Block::meta(format!("Noise floor: {}", figure::noise(run))));

    body.push(Block::heading(3, "The set-up"));
    for choice in &proposal.choices {
        body.push(Block::text(format!("  {}: {}", choice.what, choice.value)));
        body.push(Block::text(format!("    {}", choice.reason)));
    }
    body.push(Block::heading(
        3,
        "What it costs: share of the plain rate, with the range of all rounds",
    ));
    body.push(Block::list(proposal.expected.iter().map(|expected| {
        let cost = reason::cost(expected.ratio);
        format!(
            "{}: {cost} of {} MB/s",
            expected.workload,
            figure::number(expected.plain_mb_s)
        )
    })));
    body.push(Block::heading(3, "Instead"));
    let instead = proposal.alternatives.iter();
    body.push(Block::list(
        instead.map(|other| format!("{}: {}", other.instead, other.cost)),
    ));

    let commands = &proposal.commands;
    for (title, lines) in [
        ("To create and open it", commands.cryptsetup.as_slice()),
        ("or", &commands.cryptmark),
        (
            "and a line of /etc/crypttab",
            std::slice::from_ref(&commands.crypttab),
        ),
        ("To measure it", &[check.to_owned()]),
    ] {
        body.push(Block::heading(3, title));
        body.push(Block::verbatim(
            lines.iter().map(|line| format!("  {line}")).collect(),
        ));
    }
    body.push(Block::warnings(proposal.notes.clone()));
    let document = Document {
        head,
        body,
        ..Document::default()
    };
    render::text::render(&document, style)
}
