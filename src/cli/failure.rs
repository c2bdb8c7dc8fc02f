//! [`Failure`]: what the user is told, in two lines, and the exit code.

use super::remedy::by_option;
use block::BlockError;
use block::signature::Wrapped;
use block::transfer::TransferError;
use lab::LabError;
use lab::energy::Fault;
use lab::estimate::EstimateError;
use lab::import::ImportError;
use lab::run::RunError;
use lab::shard::ShardError;
use lab::store::StoreError;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;
use volume::recall::RecallError;
use volume::request::with_causes;
use volume::{Verdict, VolumeError};

/// An error as the contract wants it: what happened, what to do, exit code.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    code: u8,
    what: String,
    remedy: String,
}

impl Failure {
    /// A failure with one of the contract's exit codes.
    pub fn new(code: u8, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            remedy: by_option(remedy.into()),
        }
    }

    /// A failure that the user has been told of.
    pub fn told(code: u8) -> Self {
        Self::new(code, "", "")
    }

    /// The exit code.
    #[cfg(test)]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// A record that cannot be written as JSON.
    pub fn unprintable(error: serde_json::Error) -> Self {
        Self::of(1, &error, "Report this with the run's id.")
    }

    /// An error of a crate, with its causes.
    pub fn of(code: u8, error: &dyn Error, remedy: impl Into<String>) -> Self {
        Self::new(code, with_causes(error), remedy)
    }

    /// The description of the error, for use in a warning.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The remedy.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The same failure in other words.
    pub fn with_what(self, what: String) -> Self {
        Self { what, ..self }
    }

    /// The same failure with another remedy.
    pub fn with_remedy(self, remedy: String) -> Self {
        let remedy = by_option(remedy);
        Self { remedy, ..self }
    }

    /// The same failure of a command that has changed something by then, which is said, with
    /// another remedy.
    pub fn after(self, change: impl std::fmt::Display, remedy: impl Into<String>) -> Self {
        Self {
            what: format!("{}; {change}", self.what),
            remedy: by_option(remedy.into()),
            ..self
        }
    }

    /// The same without the line breaks that answers of servers have.
    #[cfg(feature = "fleet")]
    pub fn on_one_line(self) -> Self {
        let words: Vec<&str> = self.what.split_whitespace().collect();
        let what = words.join(" ");
        Self { what, ..self }
    }

    /// The same, of a file.
    pub fn within(self, file: &str) -> Self {
        Self {
            what: format!("{file}: {}", self.what),
            ..self
        }
    }

    /// Prints the two lines and hands back the exit code.
    pub fn print(&self) -> ExitCode {
        if !self.what.is_empty() {
            eprintln!("error: {}\n  {}", self.what, self.remedy);
        }
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Failure {}

/// What the engine is told by the program that it calls back.
impl From<Failure> for VolumeError {
    fn from(failure: Failure) -> Self {
        Self::Caller(Box::new(failure))
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

impl From<ShardError> for Failure {
    fn from(error: ShardError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let code = match fault {
            Fault::Absent { .. } => 2,
            _ => 1,
        };
        Self::of(code, &fault, fault.remedy())
    }
}

impl From<EstimateError> for Failure {
    fn from(error: EstimateError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        VolumeError::Block(error).into()
    }
}

impl From<VolumeError> for Failure {
    fn from(error: VolumeError) -> Self {
        let error = match error {
            VolumeError::Caller(said) => match said.downcast() {
                Ok(failure) => return *failure,
                Err(said) => VolumeError::Caller(said),
            },
            error => error,
        };
        let told = (error.change(), error.remedy());
        let error = match (error, told) {
            (
                VolumeError::Rewritten { error } | VolumeError::Partly { error, .. },
                (Some(change), remedy),
            ) => return Self::from(*error).after(change, remedy),
            (error, _) => error,
        };
        let code = code_of(error.verdict());
        let remedy = match &error {
            // The lab takes directories as well, and a volume does not.
            VolumeError::Block(BlockError::NotADevice { .. }) => {
                "Name a file or a block device.".to_owned()
            }
            VolumeError::EmptyPassphrase => {
                "Give one on the next line of standard input, in a file or on a terminal, or \
                 confirm with --allow-empty-passphrase."
                    .to_owned()
            }
            // With the program, it would be open.
            VolumeError::NoSignature {
                holds: Some(what), ..
            } if cfg!(target_os = "linux") && is_by_qemu(what) => {
                "Install qemu-nbd (in Debian's package qemu-utils), which opens it, or convert it \
                 with `qemu-img convert -O raw`."
                    .to_owned()
            }
            // An option is known by its own name.
            VolumeError::Foreign {
                parameter, format, ..
            } => {
                let option = parameter.replace('_', "-");
                let what = format!("--{option} has no meaning for a {format} volume");
                return Self::new(code, what, error.remedy());
            }
            error => error.remedy(),
        };
        Self::of(code, &error, remedy)
    }
}

impl From<RecallError> for Failure {
    fn from(error: RecallError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        let (code, remedy) = match &error {
            TransferError::Block(source) => {
                let is_protected = matches!(source, BlockError::Protected { .. });
                let code = if is_protected { 4 } else { 1 };
                return Self::of(code, &error, source.remedy());
            }
            TransferError::Input(_) => {
                (1, "Check the input. Only a part of the volume was written.")
            }
            // It may have failed; who wanted no more than the beginning knows that.
            TransferError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => (
                1,
                "The program that reads the output ended before all was written.",
            ),
            TransferError::Output(_) => (1, "Check the free space and the permissions."),
            TransferError::TooLong { .. } => (2, "Give less input, or a larger volume."),
            TransferError::Stopped => (130, "Run it again from the start."),
        };
        Self::of(code, &error, remedy)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::of(code_of(error.verdict()), &error, error.remedy())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(error) | RunError::Failed { source: error, .. } => error.into(),
            RunError::Stopped => Self::of(2, &error, error.remedy()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        use StoreError as E;
        // The user named a store that is not there, or is not a store; all else is a failure.
        let code = match &error {
            E::EmptyLocation
            | E::NoPostgres { .. }
            | E::NotAStore { .. }
            | E::Foreign { .. }
            | E::OtherVersion { .. }
            | E::Damaged { .. }
            | E::Record { .. }
            | E::Schema { .. }
            | E::Empty { .. }
            | E::NoSuchRun { .. }
            | E::Ambiguous { .. }
            | E::NoSuchExperiment { .. }
            | E::NotOneRun { .. }
            | E::OtherExperiment { .. }
            | E::Configuration { .. }
            | E::Exposed { .. }
            | E::NoSuchBaseline { .. }
            | E::BaselineName { .. }
            | E::IsBaseline { .. } => 2,
            _ => 1,
        };
        Self::of(code, &error, error.remedy())
    }
}

impl From<::report::compare::CompareError> for Failure {
    fn from(error: ::report::compare::CompareError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

/// The exit code for what an error means.
fn code_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 1,
        Verdict::BadInput => 2,
        Verdict::WrongSecret => 3,
        Verdict::Protected => 4,
        Verdict::Interrupted => 130,
    }
}

/// Whether qemu-nbd opens an image of the format with this name.
fn is_by_qemu(name: &str) -> bool {
    matches!(
        Wrapped::named(name),
        Some(Wrapped::Image {
            driver: Some(_),
            ..
        })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open /x")]
        struct Outer(#[source] std::io::Error);
        let failure = Failure::of(2, &Outer(std::io::Error::other("disk on fire")), "Fly.");
        assert_eq!(failure.what, "cannot open /x: disk on fire");

        #[derive(Debug, thiserror::Error)]
        #[error(transparent)]
        struct Through(std::io::Error);
        let failure = Failure::of(2, &Through(std::io::Error::other("alone")), "");
        assert_eq!(failure.what, "alone");
    }
}
