//! Start a measurement: choose, look at what it will do, begin.

use super::job::{Jobs, Kind, Order};
use crate::cli::Failure;
use crate::cli::web::{Answer, Request};
use ::report::window::{Place, Plan, Preview, Start};
use bytesize::ByteSize;
use lab::probe;
use lab::session::unlock::PLAN;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The first page.
pub fn start(jobs: &Jobs) -> Answer {
    let host = probe::host();
    let start = Start {
        machine: format!("{}, {} cores, {}", host.cpu, host.cores, host.os),
        places: probe::places().into_iter().map(place).collect(),
        plans: plans(),
        running: jobs.measuring(),
    };
    Answer::page(start.page())
}

/// The plans that ship, and the one that is built in.
fn plans() -> Vec<Plan> {
    let built_in = (
        PLAN,
        "what unlocking costs here, and what a guess costs".to_owned(),
    );
    let all = lab::plan::Plan::shipped().into_iter().chain([built_in]);
    let named = all.map(|(name, title)| Plan {
        name: name.to_owned(),
        title,
    });
    named.collect()
}

fn place(site: probe::Site) -> Place {
    let size = |bytes: u64| ByteSize(bytes).display().si_short().to_string();
    let mut about = vec![match site.free {
        Some(free) => format!("{} free of {}", size(free), size(site.size)),
        None => size(site.size),
    }];
    about.extend(site.filesystem);
    about.extend(site.device);
    about.push(site.medium);
    about.push(match site.encrypted_by.is_empty() {
        true => "not encrypted".to_owned(),
        false => format!("encrypted by {}", site.encrypted_by.join(", ")),
    });
    let readonly = (!site.writable).then(|| "you may not write there".to_owned());
    Place {
        path: site.path.display().to_string(),
        about: about.join(" · "),
        unusable: site.in_use.or(readonly),
    }
}

/// What a user has chosen.
struct Choice {
    what: String,
    at: PathBuf,
    plan: String,
}

impl Choice {
    fn of(request: &Request) -> Result<Self, Failure> {
        let (at, other) = (request.field("at"), request.field("other"));
        let at = match other.trim() {
            "" => at,
            other => other.to_owned(),
        };
        let path = PathBuf::from(&at);
        if !lab::target::names_export(&path) && !path.exists() {
            return Err(Failure::new(
                2,
                format!("{at} does not exist"),
                "Choose a place of the list, or type the whole path of another.",
            ));
        }
        let known = plans()
            .iter()
            .any(|plan| plan.name == request.field("plan"));
        let what = request.field("what");
        if what == "plan" && !known {
            return Err(Failure::new(
                2,
                "there is no such plan",
                "Choose one of the list.",
            ));
        }
        Ok(Self {
            what,
            at: path,
            plan: request.field("plan"),
        })
    }

    /// The title, and the command without what a confirmation adds.
    fn order(&self) -> Result<(String, Vec<OsString>, Kind), Failure> {
        let run = |plan: &str| vec!["run".into(), plan.into(), self.at()];
        Ok(match self.what.as_str() {
            "cost" => (
                "What does encryption cost here?".into(),
                run("quick"),
                Kind::Run,
            ),
            "advise" => (
                "Which set-up should I choose?".into(),
                vec!["advise".into(), self.at()],
                Kind::Advice,
            ),
            "ciphers" => (
                "How fast are the ciphers in memory?".into(),
                vec!["run".into(), "ciphers".into()],
                Kind::Run,
            ),
            "crystaldiskmark" => (
                "What would CrystalDiskMark show?".into(),
                run("crystaldiskmark"),
                Kind::Run,
            ),
            "plan" => (
                format!("The plan {}", self.plan),
                run(&self.plan),
                Kind::Run,
            ),
            _ => {
                let remedy = "Choose one of the list.";
                return Err(Failure::new(2, "there is no such question", remedy));
            }
        })
    }

    fn at(&self) -> OsString {
        let mut at = OsString::from("--at=");
        at.push(&self.at);
        at
    }

    /// The file or device that would be overwritten.
    fn overwrites(&self) -> Option<String> {
        let in_memory = self.what == "ciphers" || (self.what == "plan" && self.plan == PLAN);
        let there = self.at.exists() && !self.at.is_dir() && !in_memory;
        let there = there || lab::target::names_export(&self.at);
        there.then(|| self.at.display().to_string())
    }
}

/// What would be done, or why it is refused.
///
/// # Errors
/// What was chosen is not there.
pub fn preview(jobs: &Jobs, request: &Request) -> Result<Answer, Failure> {
    let choice = Choice::of(request)?;
    let (title, arguments, kind) = choice.order()?;
    let mut dry = match kind {
        // It measures this plan, and says so in no other way.
        Kind::Advice => vec!["run".into(), "advice".into(), choice.at()],
        _ => arguments.clone(),
    };
    dry.push("--dry-run".into());
    let came = jobs.ask(&dry, None)?;
    let refused = (came.code != Some(0)).then(|| told(&came.errors));
    let busy = jobs.measuring().map(|(_, other)| {
        let what = format!("another measurement is under way: {other}");
        (what, "Wait for its end, or stop it.".to_owned())
    });
    let mut will = came.out;
    if choice.at.is_dir() && choice.what != "ciphers" {
        will.push_str(&room(&choice.at));
    }
    let preview = Preview {
        title,
        will,
        command: Jobs::typed(&arguments),
        fields: vec![
            ("at", choice.at.display().to_string()),
            ("what", choice.what.clone()),
            ("plan", choice.plan.clone()),
        ],
        overwrites: choice.overwrites(),
        refused: refused.or(busy),
    };
    Ok(Answer::page(preview.page()))
}

/// The space at a directory, in a line.
fn room(at: &Path) -> String {
    let site = probe::places().into_iter().find(|site| site.path == at);
    let free = site.and_then(|site| site.free);
    free.map_or_else(String::new, |free| {
        format!("{} are free there\n", ByteSize(free).display().si())
    })
}

/// What is wrong and what to do, of a command's two lines.
fn told(errors: &str) -> (String, String) {
    let mut lines = errors.lines().filter(|line| !line.starts_with('{'));
    let what = lines.next().unwrap_or("the command failed");
    let what = what.strip_prefix("error: ").unwrap_or(what).to_owned();
    let remedy: Vec<&str> = lines.map(str::trim).collect();
    (what, remedy.join(" "))
}

/// Begins what a user has looked at.
///
/// # Errors
/// What was chosen is not there or not confirmed, or another measurement goes on.
pub fn begin(jobs: &Jobs, request: &Request) -> Result<Answer, Failure> {
    let choice = Choice::of(request)?;
    let (title, mut arguments, kind) = choice.order()?;
    if let Some(path) = choice.overwrites() {
        if request.field("confirm") != path {
            return Err(Failure::new(
                2,
                format!("{path} would be overwritten, and its name was not typed"),
                "Go back, and type its name.",
            ));
        }
        arguments.push("--yes".into());
    }
    let job = jobs.start(Order {
        title,
        arguments,
        secret: None,
        kind,
    })?;
    Ok(Answer::go_to(&job.address()))
}
