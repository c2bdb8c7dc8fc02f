//! The four doors of the engine are asked about the same volumes: the crate for Rust, the program,
//! the library for C and the package for Python. They give the same answers in the same words.

#![cfg(target_os = "linux")]

extern crate volume as cryptmark_volume;

mod asked;
mod corpus;
mod damage;
mod opened;
mod words;

#[path = "../../crates/volume/tests/bitlk/maker.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod bitlk_maker;
#[path = "../../crates/volume/tests/fvault2/maker.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod fvault2_maker;
#[path = "../../crates/volume/tests/parts/maker.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod parts_maker;

#[path = "../../crates/volume/tests/hostile/kit.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod kit;
#[path = "../../crates/volume/tests/hostile/luks1.rs"]
mod luks1;
#[path = "../../crates/volume/tests/hostile/luks1_keyslots.rs"]
mod luks1_keyslots;
#[path = "../../crates/volume/tests/hostile/luks2_areas.rs"]
mod luks2_areas;
#[path = "../../crates/volume/tests/hostile/luks2_copies.rs"]
mod luks2_copies;
#[path = "../../crates/volume/tests/hostile/luks2_costs.rs"]
mod luks2_costs;
#[path = "../../crates/volume/tests/hostile/luks2_digests.rs"]
mod luks2_digests;
#[path = "../../crates/volume/tests/hostile/luks2_json.rs"]
mod luks2_json;
#[path = "../../crates/volume/tests/hostile/luks2_members.rs"]
mod luks2_members;
#[path = "../../crates/volume/tests/hostile/luks2_reencryption.rs"]
mod luks2_reencryption;
#[path = "../../crates/volume/tests/hostile/luks2_segments.rs"]
mod luks2_segments;

use asked::{Answer, Question, Work};
use corpus::{Case, Image};
use opened::{Built, Doors, NAMES};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

fn hostile() -> Vec<kit::Case> {
    let all = [
        luks1::cases(),
        luks1_keyslots::cases(),
        luks2_copies::cases(),
        luks2_json::cases(),
        luks2_members::cases(),
        luks2_areas::cases(),
        luks2_digests::cases(),
        luks2_costs::cases(),
        luks2_costs::cases_of_all(),
        luks2_segments::cases(),
        luks2_reencryption::cases(),
    ];
    let opened = |case: &kit::Case| !matches!(case.attempt, kit::Attempt::Label);
    all.into_iter().flatten().filter(opened).collect()
}

#[test]
fn every_door_gives_the_same_answer() {
    let built = Built::new();
    let cases = corpus::all(hostile());
    let chosen = std::env::var("CRYPTMARK_DOORS").unwrap_or_default();
    let chosen: Vec<&Case> = cases.iter().filter(|case| case.name.contains(&chosen)).collect();
    let next = Mutex::new(chosen.iter());
    let told = Mutex::new(Told::default());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        // Doors wait for disks and for each other's ends.
        for _ in 0..2 * cores {
            scope.spawn(|| {
                let mut doors = Doors::open(&built);
                while let Some(case) = { next.lock().unwrap().next() } {
                    ask(&mut doors, case, Work::Read, &told);
                    if !case.is_costly && ask(&mut doors, case, Work::OpenToWrite, &told) {
                        ask(&mut doors, case, Work::Overwrite, &told);
                    }
                }
            });
        }
    });
    let told = told.into_inner().unwrap();
    println!("{} volumes: {:?}", chosen.len(), told.counts);
    let wrong = told.differences;
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[derive(Default)]
struct Told {
    differences: Vec<String>,
    counts: std::collections::BTreeMap<String, usize>,
}

/// Asks all doors, and writes down where they differ. Whether one of them did it, or would do it if
/// a loss were accepted.
fn ask(doors: &mut Doors, case: &Case, work: Work, told: &Mutex<Told>) -> bool {
    let begun = Instant::now();
    let place = Laid::out(case);
    let question = place.question(case, work);
    let before = place.bytes();
    let mut wrong = Vec::new();
    let mut left: Vec<Vec<Option<Vec<u8>>>> = Vec::new();
    let answers: Vec<Answer> = (0..NAMES.len())
        .map(|door| {
            if left.last().is_some_and(|left| *left != before) {
                place.put(case);
            }
            let answer = doors.ask(door, &question);
            let after = place.bytes();
            let may_write = work == Work::Overwrite && matches!(answer, Answer::Opened(_));
            if !may_write && after != before {
                wrong.push(format!("{} has changed the files", NAMES[door]));
            }
            left.push(after);
            answer
        })
        .collect();
    if let Answer::Opened(opened) = &answers[0]
        && opened.info.as_ref().is_none_or(|info| !info.to_string().contains("\"integrity\""))
    {
        for (door, after) in left.iter().enumerate() {
            if *after != left[0] && matches!(answers[door], Answer::Opened(_)) {
                wrong.push(format!("{} has written other bytes", NAMES[door]));
            }
        }
    }
    if let (Work::Read, Some(expected), Answer::Opened(opened)) =
        (work, &case.plaintext, &answers[0])
        && opened.digest.as_ref() != Some(expected)
    {
        wrong.push("the plaintext is another one".to_owned());
    }
    for (door, answer) in answers.iter().enumerate().skip(1) {
        if let Some(difference) = difference(&answers[0], answer, &question, door) {
            wrong.push(difference);
        }
    }
    let mut told = told.lock().unwrap();
    let kind = match &answers[0] {
        Answer::Opened(_) => format!("{work:?} opened"),
        Answer::Refused(refused) => format!("{work:?} refused with {}", refused.code),
    };
    *told.counts.entry(kind).or_default() += 1;
    if begun.elapsed().as_secs() > 3 {
        println!("{} {work:?}: {:?}", case.name, begun.elapsed());
    }
    if !wrong.is_empty() {
        let mut text = format!("{}, {work:?}: {}", case.name, wrong.join("; "));
        for (name, answer) in NAMES.iter().zip(&answers) {
            text += &format!("\n    {name}: {}", place.shown(answer));
        }
        told.differences.push(text);
    }
    answers.iter().any(|answer| match answer {
        Answer::Opened(_) => true,
        Answer::Refused(refused) => refused.question.is_some(),
    })
}

/// How the answer of a door differs from that of the engine.
fn difference(engine: &Answer, answer: &Answer, question: &Question, door: usize) -> Option<String> {
    let is_program = NAMES[door] == "program";
    let is = |what: &str| Some(format!("{} has another {what}", NAMES[door]));
    match (engine, answer) {
        (Answer::Opened(engine), Answer::Opened(door)) => {
            let differs = |known: bool, same: bool| known && !same;
            if differs(door.size.is_some(), door.size == engine.size) {
                return is("size");
            }
            if differs(door.digest.is_some(), door.digest == engine.digest) {
                return is("plaintext");
            }
            if differs(door.info.is_some(), door.info == engine.info) {
                return is("description");
            }
            let missing = engine.warnings.iter().any(|text| !door.warnings.contains(text));
            if missing || (!is_program && door.warnings != engine.warnings) {
                return is("warning");
            }
            None
        }
        (Answer::Refused(engine), Answer::Refused(door)) => {
            let what = match is_program {
                true => words::of_engine(&door.what, &question.paths()),
                false => door.what.clone(),
            };
            if door.code != engine.code {
                return is("code");
            }
            if what != engine.what {
                return is("text");
            }
            let same = match is_program {
                true => door.question.is_some() == engine.question.is_some(),
                false => door.question == engine.question,
            };
            (!same).then(|| is("question")).flatten()
        }
        _ => is("verdict"),
    }
}

/// A folder with the files of a case.
struct Laid {
    folder: tempfile::TempDir,
    image: PathBuf,
    options: Vec<(&'static str, String)>,
}

impl Laid {
    fn out(case: &Case) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = case.options.clone();
        if case.header.is_some() {
            let header = folder.path().join("header");
            options.push(("header", header.into_os_string().into_string().unwrap()));
        }
        let image = folder.path().join("image");
        let laid = Self {
            folder,
            image,
            options,
        };
        laid.put(case);
        laid
    }

    fn question<'a>(&'a self, case: &'a Case, work: Work) -> Question<'a> {
        Question {
            path: &self.image,
            options: &self.options,
            secret: case.secret.as_ref(),
            work,
            folder: self.folder.path(),
        }
    }

    /// Puts the files there as they were.
    fn put(&self, case: &Case) {
        put(&self.image, &case.image);
        if let Some(header) = &case.header {
            put(&self.folder.path().join("header"), header);
        }
        if let Some(beside) = &case.beside {
            fs::write(self.folder.path().join("image.cryptmark-header"), &**beside).unwrap();
        }
    }

    /// What the files hold.
    fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        let names = ["image", "header", "image.cryptmark-header"];
        let read = |name| {
            let path = self.folder.path().join(name);
            path.is_file().then(|| fs::read(path).unwrap())
        };
        names.map(read).into()
    }

    fn shown(&self, answer: &Answer) -> String {
        let shown = match answer {
            Answer::Opened(opened) => format!(
                "opened, {:?} bytes, digest {:?}, warnings {:?}",
                opened.size, opened.digest, opened.warnings
            ),
            Answer::Refused(refused) => {
                let question = refused.question.as_deref().unwrap_or("nothing");
                format!("{} {} (asks for {question})", refused.code, refused.what)
            }
        };
        shown.replace(&*self.folder.path().to_string_lossy(), "FOLDER")
    }
}

fn put(path: &Path, image: &Image) {
    match image {
        Image::File(bytes, damage) => {
            let mut bytes = bytes.to_vec();
            (damage.apply)(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        Image::Directory => fs::create_dir_all(path).unwrap(),
        Image::Pipe if path.exists() => {}
        Image::Pipe => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        Image::Missing => {}
    }
}
