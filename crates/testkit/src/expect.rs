//! How a command must end.

use std::process::{Command, Output};

/// Runs a command to its end, and panics with the command and its errors if it ends otherwise.
pub trait Expect {
    /// Must exit with `code`.
    #[track_caller]
    fn ends(&mut self, code: i32) -> Output;

    /// Must succeed.
    #[track_caller]
    fn succeeds(&mut self) -> Output {
        self.ends(0)
    }

    /// Must exit with `code` and an error of two lines, what happened and what to do; returns both.
    #[track_caller]
    fn fails(&mut self, code: i32) -> String;
}

impl Expect for Command {
    #[track_caller]
    fn ends(&mut self, code: i32) -> Output {
        let output = self
            .output()
            .unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{self:?}\n{said}");
        output
    }

    #[track_caller]
    fn fails(&mut self, code: i32) -> String {
        let output = self.output();
        let output = output.unwrap_or_else(|error| panic!("{self:?}: {error}"));
        two_lines(&output, code, &format!("{self:?}"))
    }
}

/// The error of a command, `what`, that must have exited with `code` and said in two lines what
/// happened and what to do.
#[track_caller]
pub fn two_lines(output: &Output, code: i32, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{what}\n{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{what}\n{said}");
    assert!(lines[0].starts_with("error: "), "{what}\n{said}");
    assert!(lines[1].starts_with("  "), "{what}\n{said}");
    assert!(lines[1].len() > 10, "{what}\n{said}");
    said
}
