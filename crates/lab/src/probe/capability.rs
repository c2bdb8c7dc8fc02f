//! The measuring capabilities of this machine, and the means to get the missing
//! ones.

/// One thing that a measurement may need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The name of the capability.
    pub name: &'static str,
    /// The purpose that it serves.
    pub purpose: &'static str,
    /// `Ok` with the thing that was found, or `Err` with the means to get it.
    pub state: Result<String, &'static str>,
}
