//! The location of a store. It is parsed from the user's input and printed without secrets.

use super::StoreError;
use super::folder::is_of_earlier;
use etcetera::BaseStrategy;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A file in a folder that has taken over the runs of an earlier version.
pub(super) const TAKEN_OVER: &str = "taken-over";

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

impl Location {
    /// Instructions for runs of an earlier version that lie next to the user's own store; `None`
    /// once they are taken over.
    pub fn earlier(&self) -> Option<String> {
        let Self::Folder(folder) = self else {
            return None;
        };
        let file = folder.with_extension("db");
        let stands = file != *folder && is_of_earlier(&file) && !folder.join(TAKEN_OVER).exists();
        stands.then(|| {
            let what = StoreError::Earlier { path: file };
            format!("{what}. {}", what.remedy())
        })
    }
}

impl FromStr for Location {
    type Err = StoreError;

    /// Reads a `postgres://` or `postgresql://` URL or a path.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        // As earlier versions called a file; what is there is said when it is opened.
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() {
            return Err(StoreError::EmptyLocation);
        }
        Ok(Self::Folder(PathBuf::from(path)))
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
        for (text, path) in [
            ("runs.db", "runs.db"),
            ("sqlite:runs.db", "runs.db"),
            ("sqlite:///var/lib/runs.db", "/var/lib/runs.db"),
        ] {
            assert_eq!(
                text.parse::<Location>().unwrap(),
                Location::Folder(path.into())
            );
        }
        assert!(matches!(
            "postgresql://host/db".parse(),
            Ok(Location::Postgres(_))
        ));
        for empty in ["", "sqlite:", "sqlite://"] {
            assert!(matches!(
                empty.parse::<Location>(),
                Err(StoreError::EmptyLocation)
            ));
        }
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
