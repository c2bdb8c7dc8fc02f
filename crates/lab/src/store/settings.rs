//! [`Settings`]: the store, and the place where records wait for it, from the command line, the
//! environment and the user's configuration.

use super::{Location, Spool, StoreError};
use bytesize::ByteSize;
use etcetera::BaseStrategy;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of records that may wait for a store, unless the configuration says so.
const SPOOL_SIZE: ByteSize = ByteSize::mib(256);

/// The store, and the place where records wait for it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The store.
    pub location: Location,
    /// The folder for runs that the store cannot take, with its limit.
    pub spool: Spool,
}

/// `config.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    store: Option<String>,
    spool: Option<PathBuf>,
    spool_size: Option<ByteSize>,
}

impl Settings {
    /// Those of this user: the store is `given`, or what `config.toml` in
    /// `$XDG_CONFIG_HOME/cryptmark` (`~/.config/cryptmark`) calls `store`, or the
    /// user's own folder. `spool` is a folder there, `spool_size` its size.
    ///
    /// # Errors
    /// [`StoreError::Configuration`], [`StoreError::Exposed`], and those of a location.
    pub fn load(given: Option<&str>) -> Result<Self, StoreError> {
        let base = etcetera::base_strategy::Xdg::new();
        let file = match &base {
            Ok(base) => read(&base.config_dir().join("cryptmark/config.toml"))?,
            Err(_) => File::default(),
        };
        let location = match given.or(file.store.as_deref()) {
            Some(text) => text.parse()?,
            None => Location::standard()?,
        };
        let folder = match (file.spool, base) {
            (Some(folder), _) => folder,
            (None, Ok(base)) => base.data_dir().join("cryptmark/spool"),
            // Nothing waits for a folder.
            (None, Err(_)) if matches!(location, Location::Folder(_)) => PathBuf::new(),
            (None, Err(source)) => return Err(StoreError::NoDataDirectory { source }),
        };
        Ok(Self {
            location,
            spool: Spool {
                folder,
                limit: file.spool_size.unwrap_or(SPOOL_SIZE).as_u64(),
            },
        })
    }
}

fn read(path: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::Configuration {
        path: path.to_owned(),
        source,
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(File::default()),
        Err(error) => return Err(failed(error)),
    };
    let file: File = toml::from_str(&text)
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error.message())))?;
    let readable = is_open_to_others(path).map_err(failed)?;
    if readable && file.store.as_deref().is_some_and(has_password) {
        return Err(StoreError::Exposed { path: path.into() });
    }
    Ok(file)
}

/// Whether others than its owner may read a file.
#[cfg(unix)]
fn is_open_to_others(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.mode() & 0o077 != 0)
}

/// Elsewhere a file has the rights of its folder, which is the user's own.
#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether a URL tells how to get in.
fn has_password(store: &str) -> bool {
    let rest = store.split_once("://").map_or("", |(_, rest)| rest);
    let (authority, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || parameters.contains("password=")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_password_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let with = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&path)
        };
        let secret = "store = \"postgres://me:s3cret@host/db\"\nspool_size = \"1 MiB\"\n";
        assert_eq!(
            with(secret, 0o600).unwrap().spool_size,
            Some(ByteSize::mib(1))
        );
        assert!(matches!(
            with(secret, 0o644),
            Err(StoreError::Exposed { .. })
        ));
        assert!(matches!(
            with("store = \"postgres://host/db?password=x\"", 0o640),
            Err(StoreError::Exposed { .. })
        ));
        assert!(with("store = \"postgres://me@host/db\"", 0o644).is_ok());
        assert!(matches!(
            with("stor = \"x\"", 0o600),
            Err(StoreError::Configuration { .. })
        ));
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap().store.is_none());
    }
}
