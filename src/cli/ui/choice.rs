//! [`Choice`]: what to measure and where, as a user chooses it.

use super::jobs::Kind;
use crate::cli::Failure;
use ::report::window::{self, Plan};
use bytesize::ByteSize;
use lab::experiment::{self, Experiment};
use lab::probe::{self, Site};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A question, and the command that answers it.
struct Question {
    /// Its name in a form.
    value: &'static str,
    title: &'static str,
    about: &'static str,
    command: &'static [&'static str],
    kind: Kind,
}

const QUESTIONS: [Question; 4] = [
    Question {
        value: "cost",
        title: "What does encryption cost here?",
        about: "AES, Serpent and Twofish beside plain storage, for a minute at most",
        command: &["run", "quick"],
        kind: Kind::Run,
    },
    Question {
        value: "advise",
        title: "Which set-up should I choose?",
        about: "measures the ciphers here and proposes one, with the commands that create it",
        command: &["advise"],
        kind: Kind::Advice,
    },
    Question {
        value: "ciphers",
        title: "How fast are the ciphers in memory?",
        about: "every disk cipher without a disk, as VeraCrypt's benchmark does; some minutes",
        command: &["run", "ciphers"],
        kind: Kind::Run,
    },
    Question {
        value: "crystaldiskmark",
        title: "What would CrystalDiskMark show?",
        about: "its default profile, plain and encrypted; some minutes",
        command: &["run", "crystaldiskmark"],
        kind: Kind::Run,
    },
];

/// The name of a plan that is chosen itself.
const A_PLAN: &str = "plan";

/// What a user has chosen.
pub struct Choice {
    /// The name of a question, or [`A_PLAN`].
    pub what: String,
    /// The plan, of which the question is not one of those above.
    pub plan: String,
    pub at: PathBuf,
}

impl Choice {
    /// The questions, without that for a plan.
    pub fn questions() -> Vec<window::Question> {
        let questions = QUESTIONS.iter().map(|question| window::Question {
            value: question.value,
            title: question.title,
            about: question.about,
        });
        questions.collect()
    }

    /// The plans that ship.
    pub fn plans() -> Vec<Plan> {
        let all = experiment::shipped().into_iter();
        let named = all.map(|(name, title)| Plan {
            name: name.to_owned(),
            title,
        });
        named.collect()
    }

    /// The choice, if what it names is there.
    ///
    /// # Errors
    /// The place, the plan or the question is not there.
    pub fn new(what: String, plan: String, at: &str) -> Result<Self, Failure> {
        let choice = Self {
            what,
            plan,
            at: at.into(),
        };
        if !lab::system::names_export(&choice.at) && !choice.at.exists() {
            return Err(Failure::new(
                2,
                format!("{at} does not exist"),
                "Choose a place of the list, or type the whole path of another.",
            ));
        }
        let known = match choice.question() {
            Some(_) => true,
            None => choice.what == A_PLAN && Self::plans().iter().any(|it| it.name == choice.plan),
        };
        match known {
            true => Ok(choice),
            false => Err(Failure::new(
                2,
                "there is no such question or plan",
                "Choose one of the list.",
            )),
        }
    }

    fn question(&self) -> Option<&'static Question> {
        QUESTIONS
            .iter()
            .find(|question| question.value == self.what)
    }

    /// The question in words.
    pub fn title(&self) -> String {
        match self.question() {
            Some(question) => question.title.to_owned(),
            None => format!("The plan {}", self.plan),
        }
    }

    /// What the command does.
    pub fn kind(&self) -> Kind {
        self.question().map_or(Kind::Run, |question| question.kind)
    }

    /// What is measured; `None` for advice, which uses storage and pauses.
    fn experiment(&self) -> Option<Experiment> {
        let plan = match (self.question().map(|question| question.command), &self.plan) {
            (None, plan) => plan,
            (Some(["run", plan, ..]), _) => *plan,
            (Some(_), _) => return None,
        };
        Experiment::load(plan).ok()
    }

    /// Whether it can be paused: the agents that measure file systems do not wait.
    pub fn pauses(&self) -> bool {
        !matches!(self.experiment(), Some(Experiment::FileSystems(_)))
    }

    /// The command, without what a confirmation adds.
    pub fn command(&self) -> Vec<OsString> {
        self.at_place(match self.question() {
            Some(question) => question.command.iter().map(OsString::from).collect(),
            None => vec!["run".into(), (&self.plan).into()],
        })
    }

    /// The command that says what would be done.
    pub fn dry_run(&self) -> Vec<OsString> {
        let mut command = match self.kind() {
            // It measures this plan, and says so in no other way.
            Kind::Advice => self.at_place(vec!["run".into(), "advice".into()]),
            _ => self.command(),
        };
        command.push("--dry-run".into());
        command
    }

    fn at_place(&self, mut command: Vec<OsString>) -> Vec<OsString> {
        if !self.is_in_memory() {
            let mut at = OsString::from("--at=");
            at.push(&self.at);
            command.push(at);
        }
        command
    }

    /// Whether no storage is touched.
    fn is_in_memory(&self) -> bool {
        self.experiment()
            .is_some_and(|experiment| !experiment.uses_storage())
    }

    /// The file, disk or export that would be overwritten.
    pub fn overwrites(&self) -> Option<String> {
        let there = self.at.exists() && !self.at.is_dir() || lab::system::names_export(&self.at);
        (there && !self.is_in_memory()).then(|| self.at.display().to_string())
    }

    /// The free space at a directory, in a line.
    pub fn room(&self) -> Option<String> {
        let free = probe::places()
            .into_iter()
            .find(|site| site.path == self.at)?
            .free?;
        (!self.is_in_memory())
            .then(|| format!("{} are free there\n", ByteSize(free).display().si()))
    }
}

/// A place in words: its size, file system, disk, and what encrypts it already.
pub fn about(site: &Site) -> String {
    let size = |bytes: u64| ByteSize(bytes).display().si_short().to_string();
    let mut about = vec![match site.free {
        Some(free) => format!("{} free of {}", size(free), size(site.size)),
        None => size(site.size),
    }];
    about.extend(site.filesystem.clone());
    about.extend(site.device.clone());
    about.push(site.medium.clone());
    about.push(match site.encrypted_by.is_empty() {
        true => "not encrypted".to_owned(),
        false => format!("encrypted by {}", site.encrypted_by.join(", ")),
    });
    about.join(" · ")
}

/// Why a place cannot be measured now.
pub fn unusable(site: &Site) -> Option<String> {
    let readonly = (!site.writable).then(|| "you may not write there".to_owned());
    site.in_use.clone().or(readonly)
}

/// What is wrong and what to do, of a command's two lines.
pub fn refusal(errors: &str) -> (String, String) {
    let mut lines = errors.lines();
    let what = lines.next().unwrap_or("the command failed");
    let what = what.strip_prefix("error: ").unwrap_or(what).to_owned();
    let remedy: Vec<&str> = lines.map(str::trim).collect();
    (what, remedy.join(" "))
}

/// Whether `name` is the place that is overwritten.
pub fn confirms(name: &str, place: &str) -> bool {
    Path::new(name.trim()) == Path::new(place)
}
