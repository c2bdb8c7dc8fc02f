//! `cryptmark ui --tty`: the same questions in a terminal.

use super::choice::{Choice, about, confirms, refusal, unusable};
use super::jobs::Jobs;
use crate::cli::{Failure, print};
use lab::probe;
use std::fmt::Write as _;
use std::io::{self, BufRead};

/// Asks, shows what will be done, and does it.
///
/// # Errors
/// The input ends, the choice is refused, or those of the command.
pub fn run(jobs: &Jobs) -> Result<(), Failure> {
    let choice = choose()?;
    let came = jobs.ask(&choice.dry_run(), None)?;
    if came.code != Some(0) {
        let (what, remedy) = refusal(&came.errors);
        return Err(Failure::new(2, what, remedy));
    }
    let mut arguments = choice.command();
    let room = choice.room().unwrap_or_default();
    print(&format!(
        "\n{}{room}The same without questions: {}\n",
        came.out,
        Jobs::typed(&arguments)
    ))?;
    if let Some(place) = choice.overwrites() {
        let typed = ask(&format!(
            "\nThis overwrites {place}, and all its data will be lost.\nType its name to confirm: "
        ))?;
        if !confirms(&typed, &place) {
            return Err(unconfirmed());
        }
        arguments.push("--yes".into());
    } else if !matches!(ask("\nStart? [Y/n] ")?.as_str(), "" | "y" | "Y" | "yes") {
        return Err(unconfirmed());
    }
    match jobs.hand_over_to(&arguments)? {
        0 => Ok(()),
        // It has said what was wrong.
        code => Err(Failure::told(code)),
    }
}

fn unconfirmed() -> Failure {
    Failure::new(2, "nothing was measured", "Start again, and confirm.")
}

fn choose() -> Result<Choice, Failure> {
    let mut text = String::from("Question\n");
    let questions = Choice::questions();
    for (number, question) in questions.iter().enumerate() {
        let _ = writeln!(text, "  {}  {}", number + 1, question.title);
        let _ = writeln!(text, "       {}", question.about);
    }
    print(&text)?;
    let asked = number(&ask("Question [1]: ")?, questions.len())?;
    let places: Vec<_> = probe::places()
        .into_iter()
        .filter(|site| unusable(site).is_none())
        .collect();
    let mut text = String::from("\nPlace\n");
    for (number, site) in places.iter().enumerate() {
        let _ = writeln!(text, "  {}  {}", number + 1, site.path.display());
        let _ = writeln!(text, "       {}", about(site));
    }
    print(&text)?;
    let typed = ask("Place, or the path of another [1]: ")?;
    let at = match typed.contains('/') {
        true => typed,
        false => {
            let place = number(&typed, places.len())?;
            places[place].path.display().to_string()
        }
    };
    Choice::new(questions[asked].value.to_owned(), String::new(), &at)
}

/// The entry of a list that was typed, from 0; the first if nothing was.
fn number(typed: &str, of: usize) -> Result<usize, Failure> {
    let number = if typed.is_empty() {
        Ok(1)
    } else {
        typed.parse()
    };
    match number {
        Ok(number) if (1..=of).contains(&number) => Ok(number - 1),
        _ => Err(Failure::new(
            2,
            format!("{typed:?} is not in the list"),
            format!("Type a number from 1 to {of}."),
        )),
    }
}

/// A line of standard input.
fn ask(question: &str) -> Result<String, Failure> {
    print(question)?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Ok(line.trim().to_owned()),
        _ => Err(Failure::new(
            2,
            "the input has ended",
            "Answer the questions, or use the command `cryptmark run`.",
        )),
    }
}
