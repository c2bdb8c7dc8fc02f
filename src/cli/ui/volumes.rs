//! Look into volumes: every form is a command of `cryptmark volume`.

use super::jobs::{Came, Jobs, Kind, Order};
use crate::cli::Failure;
use crate::cli::web::{Answer, Request};
use ::report::window::{Entry, Outcome, Volume, Volumes, files};
use bytesize::ByteSize;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Entries of a folder that are shown.
const SHOWN: usize = 500;

/// The answer to a request on volumes; `None` if it is about something else.
pub fn answer(jobs: &Jobs, request: &Request) -> Option<Result<Answer, Failure>> {
    let path = request.field("path");
    let on = |action: &[&str]| {
        let mut arguments: Vec<OsString> = vec!["volume".into()];
        arguments.extend(action.iter().map(OsString::from));
        // A name that begins with a dash is no option.
        arguments.extend(["--".into(), OsString::from(&path)]);
        arguments
    };
    Some(match (request.is_form, request.path.as_str()) {
        (false, "volumes") => overview(jobs),
        (false, "files") => folder(&request.field("at")),
        (false, "volume") => show(jobs, &path, None),
        (true, "open") => open(jobs, request, on(&["open", "--passphrase-file", "-"])),
        (true, "mount") => mount(jobs, request, &path),
        (true, "umount") => plainly(jobs, &path, on(&["umount"])),
        (true, "backup") => {
            let output = request.field("output");
            plainly(
                jobs,
                &path,
                on(&["header", "backup", &format!("--output={output}")]),
            )
        }
        (true, "export") => export(jobs, request, &path),
        (true, "trim") => trim(jobs, request),
        _ => return None,
    })
}

fn overview(jobs: &Jobs) -> Result<Answer, Failure> {
    let status = jobs.ask(&["volume".into(), "status".into()], None)?;
    let places = lab::probe::places().into_iter();
    let folders = places.map(|site| {
        let is_folder = site.path.is_dir();
        Entry {
            path: site.path.display().to_string(),
            name: site.path.display().to_string(),
            about: if is_folder { "folder" } else { "disk" }.to_owned(),
            is_folder,
        }
    });
    let page = Volumes {
        status: said(&status),
        folders: folders.collect(),
    };
    Ok(Answer::page(page.page()))
}

/// The files of a folder.
fn folder(at: &str) -> Result<Answer, Failure> {
    let unreadable = |error: std::io::Error| {
        let remedy = "Choose another folder, or type the path of the volume.";
        Failure::new(2, format!("cannot read {at}: {error}"), remedy)
    };
    let folder = fs::canonicalize(at).map_err(unreadable)?;
    let found = fs::read_dir(&folder).map_err(unreadable)?;
    let mut entries: Vec<Entry> = found.flatten().filter_map(|found| entry(&found)).collect();
    entries.sort_by(|a, b| (!a.is_folder, &a.name).cmp(&(!b.is_folder, &b.name)));
    let cut = entries.len() > SHOWN;
    entries.truncate(SHOWN);
    let above = folder.parent().map(|above| above.display().to_string());
    let page = files(
        &folder.display().to_string(),
        above.as_deref(),
        &entries,
        cut,
    );
    Ok(Answer::page(page))
}

/// A folder, a file or a block device. Hidden ones and names that are not text are left out.
fn entry(found: &fs::DirEntry) -> Option<Entry> {
    let path = found.path();
    let name = found.file_name().into_string().ok()?;
    let metadata = fs::metadata(&path).ok()?;
    let kind = metadata.file_type();
    let about = match (kind.is_dir(), kind.is_file(), kind.is_block_device()) {
        (true, ..) => "folder".to_owned(),
        (_, true, _) => ByteSize(metadata.len()).display().si_short().to_string(),
        (.., true) => "disk".to_owned(),
        _ => return None,
    };
    (!name.starts_with('.')).then(|| Entry {
        path: path.to_string_lossy().into_owned(),
        name,
        about,
        is_folder: kind.is_dir(),
    })
}

fn show(jobs: &Jobs, path: &str, outcome: Option<Outcome>) -> Result<Answer, Failure> {
    let arguments = ["volume", "info", "--", path].map(OsString::from);
    let info = jobs.ask(&arguments, None)?;
    let folder = Path::new(path)
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned);
    // New files beside a disk would be in the folder of devices.
    let folder = match folder.starts_with("/dev") {
        true => std::env::current_dir().unwrap_or_default(),
        false => folder,
    };
    let page = Volume {
        path: path.to_owned(),
        info: came(&info),
        outcome,
        folder: folder.display().to_string(),
    };
    Ok(Answer::page(page.page()))
}

/// Runs a command that needs no secret, and shows the volume with what came of it.
fn plainly(jobs: &Jobs, path: &str, arguments: Vec<OsString>) -> Result<Answer, Failure> {
    let outcome = came(&jobs.ask(&arguments, None)?);
    show(jobs, path, Some(outcome))
}

/// The same with the passphrase of the form.
fn secretly(jobs: &Jobs, request: &Request, arguments: Vec<OsString>) -> Result<Answer, Failure> {
    let passphrase = request.secret("passphrase");
    let outcome = came(&jobs.ask(&arguments, Some(&passphrase))?);
    show(jobs, &request.field("path"), Some(outcome))
}

/// Checks a passphrase, and says how long that takes.
fn open(jobs: &Jobs, request: &Request, arguments: Vec<OsString>) -> Result<Answer, Failure> {
    let start = Instant::now();
    let mut outcome = came(&jobs.ask(&arguments, Some(&request.secret("passphrase")))?);
    if outcome.well {
        outcome.text += &format!(
            "opened in   {:.2} s; a guess at the passphrase takes as long on this machine\n",
            start.elapsed().as_secs_f64()
        );
    }
    show(jobs, &request.field("path"), Some(outcome))
}

fn mount(jobs: &Jobs, request: &Request, path: &str) -> Result<Answer, Failure> {
    let mut arguments: Vec<OsString> = ["volume", "mount", "--daemon", "--passphrase-file", "-"]
        .map(OsString::from)
        .into();
    if request.field("read-only") == "yes" {
        arguments.push("--read-only".into());
    }
    arguments.extend(["--".into(), path.into(), request.field("folder").into()]);
    secretly(jobs, request, arguments)
}

/// Writes the decrypted volume to a new file.
fn export(jobs: &Jobs, request: &Request, path: &str) -> Result<Answer, Failure> {
    let output = format!("--output={}", request.field("output"));
    let arguments = [
        "volume",
        "export",
        "--passphrase-file",
        "-",
        &output,
        "--",
        path,
    ];
    let job = jobs.start(Order {
        title: format!("Export of {path}"),
        arguments: arguments.map(OsString::from).into(),
        secret: Some(request.secret("passphrase")),
        kind: Kind::Volume,
        pauses: false,
    })?;
    Ok(Answer::go_to(&job.address()))
}

/// Follows discards from a mounted file system down to the disk.
fn trim(jobs: &Jobs, request: &Request) -> Result<Answer, Failure> {
    let folder = request.field("folder");
    let job = jobs.start(Order {
        title: format!("TRIM below {folder}"),
        arguments: ["volume", "trim-check", "--", &folder]
            .map(OsString::from)
            .into(),
        secret: None,
        kind: Kind::Volume,
        pauses: false,
    })?;
    Ok(Answer::go_to(&job.address()))
}

fn came(came: &Came) -> Outcome {
    Outcome {
        well: came.code == Some(0),
        text: said(came),
    }
}

/// What a command said, on both streams.
fn said(came: &Came) -> String {
    match came.errors.is_empty() {
        true => came.out.clone(),
        false => format!("{}{}", came.out, came.errors),
    }
}
