//! The answers of the doors, compared.

use crate::asked::{Answer, Change, Question, Work, digest};
use crate::corpus::Case;
use crate::known::{self, Known};
use crate::laid::Laid;
use crate::opened::{Doors, NAMES};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// What came of comparing.
pub struct Compared {
    different: Vec<String>,
    known: &'static [Known],
    /// The known differences that were found.
    found: BTreeSet<usize>,
    pub counts: BTreeMap<String, usize>,
}

impl Compared {
    /// Nothing yet. These differences are known.
    pub const fn knowing(known: &'static [Known]) -> Self {
        Self {
            different: Vec::new(),
            known,
            found: BTreeSet::new(),
            counts: BTreeMap::new(),
        }
    }

    /// The differences. If all was compared, known ones that are gone are told as well.
    pub fn different(self, are_all: bool) -> Vec<String> {
        let gone = |(number, known): (usize, &Known)| {
            let is_gone = are_all && !self.found.contains(&number);
            is_gone.then(|| format!("{known:?} does not differ any more: take it out of known.rs"))
        };
        let gone: Vec<String> = self.known.iter().enumerate().filter_map(gone).collect();
        [self.different, gone].concat()
    }
}

/// Asks all doors to read a volume. The words of a refusal, without numbers.
pub fn read(doors: &mut Doors, case: &Case, compared: &Mutex<Compared>) -> Option<String> {
    let place = Laid::out(case);
    let mut asked = Asked {
        doors,
        case,
        place: &place,
        compared,
    };
    match asked.to(Work::Read) {
        Answer::Opened(_) => None,
        refused => {
            let format = case.options.first();
            let digits = |letter: char| letter.is_ascii_digit();
            Some(format!(
                "{format:?} {}",
                place.shown(&refused).replace(digits, "")
            ))
        }
    }
}

/// Asks all doors to write to a volume.
pub fn write(doors: &mut Doors, case: &Case, compared: &Mutex<Compared>) {
    let place = Laid::out(case);
    let mut asked = Asked {
        doors,
        case,
        place: &place,
        compared,
    };
    match asked.to(Work::OpenToWrite) {
        Answer::Refused(refused) if refused.question.is_none() => {}
        // Nothing was asked, and so nothing is accepted.
        Answer::Opened(_) if !case.is_whole() => {}
        _ => drop(asked.to(Work::Overwrite)),
    }
}

/// Asks all doors to change a volume.
pub fn change(doors: &mut Doors, case: &Case, compared: &Mutex<Compared>) {
    let place = Laid::out(case);
    place.save(case);
    let mut asked = Asked {
        doors,
        case,
        place: &place,
        compared,
    };
    for change in Change::ALL {
        asked.to(Work::Change(change));
    }
}

struct Asked<'a> {
    doors: &'a mut Doors,
    case: &'a Case,
    place: &'a Laid,
    compared: &'a Mutex<Compared>,
}

impl Asked<'_> {
    /// Asks all doors, and writes down where they differ. The answer is the engine's.
    fn to(&mut self, work: Work) -> Answer {
        let (case, place) = (self.case, self.place);
        let question = place.question(case, work);
        let mut wrong = Vec::new();
        let mut written = None;
        let mut answers = Vec::new();
        for (door, name) in self.doors.names().iter().enumerate() {
            let answer = self.doors.ask(door, &question);
            let after = match (work, &answer) {
                (Work::Overwrite | Work::Change(_), Answer::Opened(_)) => place.bytes(),
                _ => Vec::new(),
            };
            if work == Work::Overwrite && !after.is_empty() && !place.is_random {
                let same = written.get_or_insert_with(|| after.clone());
                if *same != after {
                    wrong.push(format!("{name} has written other bytes"));
                }
            }
            if !after.is_empty() {
                place.put(case);
            }
            answers.push(answer);
        }
        if place.bytes() != place.before {
            wrong.push("a door has changed the files".to_owned());
            place.put(case);
        }
        if let (Work::Read, Some(expected), Answer::Opened(opened)) =
            (work, &case.plaintext, &answers[0])
            && opened.ends.as_deref().map(digest).as_ref() != Some(expected)
        {
            wrong.push("the plaintext is another one".to_owned());
        }
        let mut compared = self.compared.lock().unwrap();
        for (door, answer) in answers.iter().enumerate().skip(1) {
            let Some(difference) = difference(&answers[0], answer, &question, door) else {
                continue;
            };
            match known::number(compared.known, &answers[0], answer) {
                Some(number) if NAMES[door] == "program" => drop(compared.found.insert(number)),
                _ => wrong.push(difference),
            }
        }
        let kind = match &answers[0] {
            Answer::Opened(_) => format!("{work:?} opened"),
            Answer::Refused(refused) => format!("{work:?} refused with {}", refused.code),
        };
        *compared.counts.entry(kind).or_default() += 1;
        if !wrong.is_empty() {
            let mut text = format!("{}, {work:?}: {}", case.name, wrong.join("; "));
            for (name, answer) in NAMES.iter().zip(&answers) {
                text += &format!("\n    {name}: {}", place.shown(answer));
            }
            compared.different.push(text);
        }
        answers.swap_remove(0)
    }
}

/// How the answer of a door differs from that of the engine.
fn difference(
    engine: &Answer,
    answer: &Answer,
    question: &Question,
    door: usize,
) -> Option<String> {
    let is_program = NAMES[door] == "program";
    let is = |what: &str| Some(format!("{} has another {what}", NAMES[door]));
    match (engine, answer) {
        (Answer::Opened(engine), Answer::Opened(door)) => {
            let differs = |known: bool, same: bool| known && !same;
            if differs(door.size.is_some(), door.size == engine.size) {
                return is("size");
            }
            if differs(door.ends.is_some(), door.ends == engine.ends) {
                return is("plaintext");
            }
            if differs(door.info.is_some(), door.info == engine.info) {
                return is("description");
            }
            let missing = engine
                .warnings
                .iter()
                .any(|text| !door.warnings.contains(text));
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
            if door.what != engine.what && what != engine.what {
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
