//! [`Storage`]: a folder or an object store that has trials, from what a user types.

use crate::FleetError;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreScheme, RetryConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Where trials are: paths begin at the folder or the prefix that the user named.
#[derive(Clone, Debug)]
pub struct Storage {
    /// As the user knows it, without secrets.
    pub(crate) place: String,
    pub(crate) store: Arc<dyn ObjectStore>,
}

impl Storage {
    /// A place to write to: a folder, which is made, or the URL of an object store,
    /// whose credentials the environment has.
    ///
    /// # Errors
    /// [`FleetError::NoPlace`], [`FleetError::Setting`], [`FleetError::Folder`].
    pub fn create(place: &str) -> Result<Self, FleetError> {
        if !is_url(place) {
            let path = Path::new(place);
            std::fs::create_dir_all(path).map_err(|source| FleetError::Folder {
                path: path.to_owned(),
                source,
            })?;
        }
        Self::open(place)
    }

    /// A place to read from; the same, where the folder is there.
    ///
    /// # Errors
    /// Those of [`Storage::create`].
    pub fn open(place: &str) -> Result<Self, FleetError> {
        if is_url(place) {
            return Self::remote(place);
        }
        let path = Path::new(place);
        let folder = path
            .canonicalize()
            .and_then(|path| path.read_dir().map(|_| path));
        let folder = folder.map_err(|source| FleetError::Folder {
            path: path.to_owned(),
            source,
        })?;
        let store = LocalFileSystem::new_with_prefix(folder)
            .map_err(|source| FleetError::of(place, source))?;
        Ok(Self {
            place: place.to_owned(),
            store: Arc::new(store),
        })
    }

    fn remote(place: &str) -> Result<Self, FleetError> {
        let nowhere = || FleetError::NoPlace {
            place: without_secrets(place),
        };
        let url = Url::parse(place).map_err(|_| nowhere())?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(|_| nowhere())?;
        // A user should learn within half a minute that the store does not answer.
        let retry = RetryConfig {
            max_retries: 4,
            retry_timeout: Duration::from_secs(20),
            ..RetryConfig::default()
        };
        let store: Result<Arc<dyn ObjectStore>, _> = match scheme {
            ObjectStoreScheme::AmazonS3 => AmazonS3Builder::from_env()
                .with_url(place)
                .with_retry(retry)
                .build()
                .map(|store| under(prefix, store)),
            ObjectStoreScheme::GoogleCloudStorage => GoogleCloudStorageBuilder::from_env()
                .with_url(place)
                .with_retry(retry)
                .build()
                .map(|store| under(prefix, store)),
            ObjectStoreScheme::MicrosoftAzure => MicrosoftAzureBuilder::from_env()
                .with_url(place)
                .with_retry(retry)
                .build()
                .map(|store| under(prefix, store)),
            _ => return Err(nowhere()),
        };
        let place = without_secrets(place);
        match store {
            Ok(store) => Ok(Self { place, store }),
            Err(source) => Err(FleetError::Setting { place, source }),
        }
    }
}

fn under(prefix: ObjectPath, store: impl ObjectStore) -> Arc<dyn ObjectStore> {
    Arc::new(PrefixStore::new(store, prefix))
}

/// Whether `place` is a URL and no folder.
pub fn is_url(place: &str) -> bool {
    place.contains("://")
}

/// A URL without user, password and parameters.
fn without_secrets(place: &str) -> String {
    let (scheme, rest) = place.split_once("://").unwrap_or(("", place));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{authority}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_without_secrets() {
        for (place, told) in [
            (
                "s3://me:s3cret@bucket/a/b?sig=s3cret#s3cret",
                "s3://bucket/a/b",
            ),
            ("az://container", "az://container"),
            ("ftp://host/x@y", "ftp://host/x@y"),
        ] {
            assert_eq!(without_secrets(place), told);
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for place in [
            "ftp://host/x",
            "https://example.org/x",
            "s3://",
            "memory:///x",
        ] {
            let refused = Storage::open(place).unwrap_err();
            assert!(
                matches!(
                    refused,
                    FleetError::NoPlace { .. } | FleetError::Setting { .. }
                ),
                "{place}: {refused:?}"
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for place in [&file, &folder.path().join("absent"), &file.join("below")] {
            let refused = Storage::open(place.to_str().unwrap()).unwrap_err();
            assert!(matches!(refused, FleetError::Folder { .. }), "{refused:?}");
        }
        assert!(Storage::create(file.to_str().unwrap()).is_err());
    }
}
