//! [`LabError`]: why the lab cannot do what was asked.

pub use crate::system::Verdict;
use std::error::Error;
use std::fmt;

/// Why the lab cannot do what was asked.
///
/// Displayed, it says what happened; [`remedy`](Self::remedy) says what to do.
#[derive(Debug)]
pub struct LabError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    verdict: Verdict,
    what: String,
    remedy: String,
    absent: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl LabError {
    /// An error with a meaning, one sentence on what happened, and the remedy as another.
    pub fn new(verdict: Verdict, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            verdict,
            what: what.into(),
            remedy: remedy.into(),
            absent: false,
            source: None,
        }))
    }

    /// An error of a request that cannot be met.
    pub fn invalid(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Verdict::BadInput, what, remedy)
    }

    /// An error of a request that was possible, and went wrong.
    pub fn failed(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Verdict::Failed, what, remedy)
    }

    /// The end of something that the user asked to stop.
    pub fn interrupted(remedy: impl Into<String>) -> Self {
        Self::new(Verdict::Interrupted, "interrupted", remedy)
    }

    /// The end of a session that the user asked to stop.
    pub(crate) fn session_interrupted() -> Self {
        Self::interrupted("The finished trials are stored: `cryptmark show latest`.")
    }

    /// The same error with its cause.
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error, which says that a system is not here.
    pub(crate) fn absent(mut self) -> Self {
        self.0.absent = true;
        self
    }

    /// The same error as a failure of what was possible.
    pub(crate) fn into_failure(mut self) -> Self {
        self.0.verdict = Verdict::Failed;
        self
    }

    /// The meaning of the error for the user.
    pub fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> &str {
        &self.0.remedy
    }

    /// Whether it says that a system cannot work here, and not that something went wrong.
    pub fn is_absence(&self) -> bool {
        self.0.absent
    }

    /// Whether the user asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.0.verdict == Verdict::Interrupted
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)
    }
}

impl Error for LabError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
