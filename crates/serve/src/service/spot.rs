//! [`Spot`]: where the plaintext is to appear as a file.

use super::{Pinned, Place, Service, ServiceError, check_file};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where a file is to appear: a new name, or that of an empty file.
#[derive(Debug)]
pub struct Spot {
    path: PathBuf,
    directory: Pinned,
    /// An empty file that is there, and stays when all is over.
    there: Option<Pinned>,
}

impl Spot {
    /// The spot that the user calls `file`.
    ///
    /// # Errors
    /// [`ServiceError::File`], [`ServiceError::System`] and [`ServiceError::Exists`].
    pub fn find(file: &Path) -> Result<Self, ServiceError> {
        let unusable = |source: io::Error| ServiceError::File {
            path: file.to_owned(),
            source,
        };
        let is_directory = || unusable(io::ErrorKind::IsADirectory.into());
        let name = file.file_name().ok_or_else(is_directory)?;
        let directory = block::folder_of(file).canonicalize();
        let directory = directory.and_then(|directory| Pinned::new(&directory));
        let directory = directory.map_err(unusable)?;
        let path = directory.path().join(name);
        check_file(&path)?;
        let there = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unusable(error)),
            Ok(found) if found.is_dir() => return Err(is_directory()),
            Ok(found) if found.is_file() && found.len() == 0 => {
                Some(Pinned::new(&path).map_err(unusable)?)
            }
            Ok(_) => {
                let path = file.to_owned();
                return Err(ServiceError::Exists { path });
            }
        };
        Ok(Self {
            path,
            directory,
            there,
        })
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, which is made if it was not there. A passphrase may have been asked for meanwhile.
    ///
    /// # Errors
    /// [`ServiceError::Moved`], [`ServiceError::Written`] and [`ServiceError::File`].
    pub fn make(&mut self, service: &Service) -> Result<Pinned, ServiceError> {
        self.directory.check()?;
        let path = &self.path;
        let unusable = |source: io::Error| ServiceError::File {
            path: path.clone(),
            source,
        };
        if let Some(there) = self.there.take() {
            there.check()?;
            let found = fs::metadata(there.through()).map_err(unusable)?;
            return match found.is_file() && found.len() == 0 {
                true => Ok(there),
                false => Err(ServiceError::Written { path: path.clone() }),
            };
        }
        service.add(Place::EmptyFile(path.clone()))?;
        let mut new = File::options();
        new.write(true).create_new(true).mode(0o600);
        let name = path.file_name().unwrap_or_default();
        let through = self.directory.through().join(name);
        let made = new.open(&through).and_then(|_| Pinned::new(&through));
        let made = made.map_err(unusable)?;
        let checked = self.directory.check();
        checked.inspect_err(|_| drop(fs::remove_file(&through)))?;
        Ok(made)
    }
}
