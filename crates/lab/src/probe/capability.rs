//! What this machine offers for measuring, and what would bring the rest.

/// One thing that a measurement may need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// What it is.
    pub name: &'static str,
    /// What it is good for.
    pub purpose: &'static str,
    /// `Ok` with what was found, or `Err` with what would bring it.
    pub state: Result<String, &'static str>,
}
