//! A proposal on a terminal.

use super::{Proposal, reason};
use crate::figure;
use crate::text::Style;
use lab::record::Run;

/// The answer first, then the set-up with its reasons, what it costs, what else
/// there is, and the commands; `check` is the command that measures it.
pub fn text(proposal: &Proposal, run: &Run, check: &str, style: &Style) -> String {
    let mut lines = Vec::new();
    style.wrap(&mut lines, &proposal.answer);
    lines.push(String::new());
    style.wrap(&mut lines, &figure::machine(run));
    for device in figure::devices(run) {
        style.wrap(&mut lines, &device);
    }
    style.wrap(&mut lines, &format!("Noise floor: {}", figure::noise(run)));

    lines.push("\nThe set-up".to_owned());
    for choice in &proposal.choices {
        style.wrap(&mut lines, &format!("  {}: {}", choice.what, choice.value));
        style.wrap(&mut lines, &format!("    {}", choice.reason));
    }

    lines.push("\nWhat it costs: of the plain rate, and what the rounds lay between".to_owned());
    for expected in &proposal.expected {
        style.wrap(
            &mut lines,
            &format!(
                "  {}: {} of {} MB/s",
                expected.workload,
                reason::cost(expected.ratio),
                figure::number(expected.plain_mb_s)
            ),
        );
    }

    lines.push("\nInstead".to_owned());
    for alternative in &proposal.alternatives {
        style.wrap(
            &mut lines,
            &format!("  {}: {}", alternative.instead, alternative.cost),
        );
    }

    // Commands are copied: a line of its own each, however long.
    let mut commands = |title: &str, commands: &[String]| {
        lines.push(format!("\n{title}"));
        lines.extend(
            commands
                .iter()
                .map(|command| format!("  {}", figure::one_line(command))),
        );
    };
    commands("To create and open it", &proposal.commands.cryptsetup);
    commands("or", &proposal.commands.cryptmark);
    commands(
        "and a line of /etc/crypttab",
        std::slice::from_ref(&proposal.commands.crypttab),
    );
    commands("To measure it", &[check.to_owned()]);
    if !proposal.notes.is_empty() {
        lines.push(String::new());
    }
    for note in &proposal.notes {
        style.wrap(&mut lines, &format!("warning: {note}"));
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}
