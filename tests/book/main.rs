//! The book and the README: every command does what its page says, and every
//! link leads somewhere. That each command's options are known and fit together
//! is tested beside them (`src/cli/book.rs`).

mod compare;
mod page;
mod shell;

use page::{Block, Page, Step, calls, pages, root};
use shell::Shell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// What came of a page.
#[derive(Default)]
struct Outcome {
    run: usize,
    /// Commands that were not run, by the reason.
    left: BTreeMap<String, usize>,
    faults: Vec<String>,
}

#[test]
fn commands_do_what_their_page_says() {
    let waiting = Mutex::new(pages());
    let all = Mutex::new(Outcome::default());
    // Two pages at a time: most wait for derivations of keys, or for disks.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let page = waiting.lock().unwrap().pop();
                    let Some(page) = page else { break };
                    let begun = Instant::now();
                    let outcome = try_page(&page);
                    let (path, run) = (page.path.display(), outcome.run);
                    println!(
                        "{path}: {run} commands, {:.1} s",
                        begun.elapsed().as_secs_f64()
                    );
                    let mut all = all.lock().unwrap();
                    all.run += outcome.run;
                    all.faults.extend(outcome.faults);
                    for (why, count) in outcome.left {
                        *all.left.entry(why).or_default() += count;
                    }
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    for (why, count) in &all.left {
        println!("skipped: {count} commands of the book: {why}");
    }
    println!("{} commands were run", all.run);
    assert!(all.faults.is_empty(), "{}", all.faults.join("\n\n"));
    assert!(all.run > 100, "{} commands", all.run);
}

/// Runs a page's commands in an empty folder, in their order.
fn try_page(page: &Page) -> Outcome {
    let mut outcome = Outcome::default();
    let shell = Shell::new();
    let mut missing: Option<String> = None;
    for block in page.blocks() {
        missing = missing.or_else(|| shell::missing(&block.needs));
        let why = block.not_run.as_ref().or(missing.as_ref());
        if let Some(why) = why {
            *outcome.left.entry(why.clone()).or_default() += block.steps.len();
            outcome.faults.extend(try_dry(page, &block, &shell));
            continue;
        }
        match try_block(page, &block, &shell) {
            Ok(()) => outcome.run += block.steps.len(),
            Err(fault) => {
                // What follows may build on it.
                outcome.faults.push(fault);
                break;
            }
        }
    }
    outcome
}

/// Runs a block's commands. One may fail where the next one is `echo $?`.
fn try_block(page: &Page, block: &Block, shell: &Shell) -> Result<(), String> {
    let mut before = 0;
    for (index, step) in block.steps.iter().enumerate() {
        let asked = block.steps.get(index + 1);
        let may_fail = asked.is_some_and(|next| next.command == "echo $?");
        let told = |what: &str| format!("{}: {}\n{what}", page.place(step.line), step.command);
        let (code, output) = shell.shell(&step.command, before);
        before = code;
        if code != 0 && !may_fail {
            return Err(told(&format!("exit code {code}\n{output}")));
        }
        compare::agree(&step.output, &output, block.varies).map_err(|fault| told(&fault))?;
    }
    Ok(())
}

/// Of what is not run, at least its plan is asked for.
fn try_dry(page: &Page, block: &Block, shell: &Shell) -> Vec<String> {
    let mut faults = Vec::new();
    for Step { line, command, .. } in &block.steps {
        for call in calls(command, "cryptmark") {
            if call.get(1).is_none_or(|word| word != "run") {
                continue;
            }
            let (code, said) = shell.program(&[&call[1..], &["--dry-run".into()]].concat());
            if code != 0 {
                faults.push(format!("{}: {command}\n{said}", page.place(*line)));
            }
        }
    }
    faults
}

#[test]
fn links_lead_somewhere() {
    let all = pages();
    let anchors: BTreeMap<&Path, _> = all
        .iter()
        .map(|page| (page.path.as_path(), page.anchors()))
        .collect();
    let mut faults = Vec::new();
    let mut count = 0;
    for page in &all {
        for link in page.links() {
            count += 1;
            let file = match link.file.is_empty() {
                true => page.path.clone(),
                false => plain(&page.path.parent().unwrap().join(&link.file)),
            };
            let mut fault = |what: &str| {
                faults.push(format!(
                    "{}: {what}: {}",
                    page.place(link.line),
                    file.display()
                ));
            };
            if !root().join(&file).exists() {
                fault("there is no such file");
            } else if page.path.starts_with("docs") && !file.starts_with("docs") {
                fault("the book does not have this file");
            }
            if let Some(anchor) = &link.anchor {
                let known = anchors.get(file.as_path());
                if !known.is_some_and(|known| known.contains(anchor)) {
                    fault(&format!("there is no heading `{anchor}`"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 40, "{count} links");
}

/// A page that the table of contents leaves out would be in no book.
#[test]
fn the_table_of_contents_has_every_page() {
    let all = pages();
    let contents = all
        .iter()
        .find(|page| page.path == Path::new("docs/SUMMARY.md"));
    let links = contents.unwrap().links();
    let listed: Vec<PathBuf> = links
        .iter()
        .map(|link| plain(&Path::new("docs").join(&link.file)))
        .collect();
    for page in &all {
        let count = listed.iter().filter(|path| **path == page.path).count();
        let expected = match page.path.to_str() {
            Some("README.md" | "docs/SUMMARY.md") => 0,
            _ => 1,
        };
        assert_eq!(
            count,
            expected,
            "{} in docs/SUMMARY.md",
            page.path.display()
        );
    }
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
