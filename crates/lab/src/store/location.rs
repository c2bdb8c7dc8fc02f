//! The location of a store. It is parsed from the user's input and printed without secrets.

use super::StoreError;
use etcetera::BaseStrategy;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The place that keeps the runs.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder of files; it is created when absent.
    Folder(PathBuf),
    /// The URL of a PostgreSQL database, `postgres://user@host/database`.
    Postgres(String),
}

impl Location {
    /// The user's own store: `$XDG_DATA_HOME/cryptmark/runs`, or the same
    /// below `~/.local/share`.
    ///
    /// Fails when the user has no home directory.
    pub fn standard() -> Result<Self, StoreError> {
        let base = etcetera::base_strategy::Xdg::new()
            .map_err(|source| StoreError::NoDataDirectory { source })?;
        Ok(Self::Folder(base.data_dir().join("cryptmark/runs")))
    }
}

impl FromStr for Location {
    type Err = StoreError;

    /// Reads a `postgres://` or `postgresql://` URL or a path.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        if text.is_empty() {
            return Err(StoreError::EmptyLocation);
        }
        Ok(Self::Folder(PathBuf::from(text)))
    }
}

impl fmt::Display for Location {
    // A URL may carry a password before the `@` and among its parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Postgres(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
                let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
                let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
                write!(f, "{scheme}://{rest}")
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_users_type() {
        for path in ["runs", "/var/lib/runs"] {
            assert_eq!(
                path.parse::<Location>().unwrap(),
                Location::Folder(path.into())
            );
        }
        assert!(matches!(
            "postgresql://host/db".parse(),
            Ok(Location::Postgres(_))
        ));
        assert!(matches!(
            "".parse::<Location>(),
            Err(StoreError::EmptyLocation)
        ));
    }

    #[test]
    fn never_prints_a_password() {
        for url in [
            "postgres://me:s3cret@host/db",
            "postgres://host/db?password=s3cret",
            "postgres://me:s3cr@et@host/db?user=x&password=s3cret",
        ] {
            let location: Location = url.parse().unwrap();
            let shown = format!("{location} {location:?}");
            assert!(!shown.contains("s3cr"), "{shown}");
            assert!(shown.contains("host/db"), "{shown}");
        }
    }
}
