//! Changes of volumes by the program.

use crate::asked::{Change, LONGER, NEW, Question, SHORTER};
use crate::opened::add_options;
use std::fs;
use std::process::Command;
use testkit::Sandbox;

/// The command of the program that makes a change.
pub fn by_program(sandbox: &Sandbox, question: &Question, change: Change) -> Command {
    let name = match change {
        Change::Create => "create",
        Change::ToLuks1 | Change::ToLuks2 => "convert",
        Change::Shorter | Change::Longer => "resize",
        Change::Key => "passwd",
        Change::Repair => "header repair",
        Change::Restore => "header restore",
    };
    let mut command = sandbox.volume_command(name);
    command.arg(question.path);
    // A conversion needs no secret, and takes none.
    let takes_secret = !matches!(change, Change::ToLuks1 | Change::ToLuks2);
    let asked = Question {
        secret: question.secret.filter(|_| takes_secret),
        ..*question
    };
    add_options(&mut command, &asked);
    let sectors = |bytes: u64| (bytes / 512).to_string();
    match change {
        Change::Shorter => command.arg("--to").arg(sectors(SHORTER)),
        Change::Longer => command.arg("--to").arg(sectors(LONGER)),
        Change::Restore => command.arg("--input").arg(question.saved()),
        Change::Key => {
            let file = question.folder.join("new");
            fs::write(&file, format!("{NEW}\n")).unwrap();
            command.arg("--new-passphrase-file").arg(file)
        }
        _ => &mut command,
    };
    command
}
