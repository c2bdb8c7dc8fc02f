//! [`Volume`]: a volume by the names of its places, and what these mean.

use super::VolumeArguments;
use crate::cli::volume::disk::{self, Disk, Names, check_distinct};
use crate::cli::volume::{losses, recognise};
use crate::cli::{Failure, limits};
use block::{BlockDevice, Hold};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use volume::judge::{State, Use};
use volume::{Access, Format, OpenOptions, Opening, Place, Site, VolumeError, operate};

/// The devices of a volume.
pub struct Devices {
    data: Disk,
    /// The header's own device, if it has one.
    header: Option<Disk>,
    /// Whether a reencryption that was stopped keeps it beside the volume.
    is_beside: bool,
}

impl Devices {
    /// What is known of the disk with the data.
    pub const fn disk(&self) -> &Disk {
        &self.data
    }

    /// The volume. Where the header is there, it is the same device as
    /// [`header`](Self::header), by its address.
    pub fn data(&self) -> &dyn BlockDevice {
        &*self.data.device
    }

    /// Where the header is.
    pub fn header(&self) -> &dyn BlockDevice {
        &*self.header.as_ref().unwrap_or(&self.data).device
    }

    /// The same for the engine.
    pub fn place(&self) -> Place {
        let header = self.header.as_ref().map(|header| header.device.clone());
        let place = Place::of(self.data.device.clone(), header).beside(self.is_beside);
        match &self.data.whole {
            Some((disk, part)) => place.on_disk(disk.clone(), part.offset),
            None => place,
        }
    }
}

/// A volume that the command line names.
#[derive(Clone, Copy)]
pub struct Volume<'a> {
    arguments: &'a VolumeArguments,
    /// The meaning of its names.
    pub names: &'a Names,
}

impl Deref for Volume<'_> {
    type Target = VolumeArguments;

    fn deref(&self) -> &VolumeArguments {
        self.arguments
    }
}

impl VolumeArguments {
    /// The volume, with the meaning of its names.
    pub fn with<'a>(&'a self, names: &'a Names) -> Volume<'a> {
        Volume {
            arguments: self,
            names,
        }
    }
}

impl Volume<'_> {
    /// The volume by its names.
    pub fn site(&self) -> Site<'_> {
        Site::new(&self.image, self.header.as_deref()).opened_by(self.names)
    }

    /// The same options for another volume.
    ///
    /// # Errors
    /// Exit code 2 if they name a header or a part, which belongs to one volume.
    pub fn of(&self, image: &Path) -> Result<VolumeArguments, Failure> {
        let of_one = match self.names.part(&self.image) {
            _ if self.header.is_some() => "--header",
            Some(_) => "--partition",
            None => {
                return Ok(VolumeArguments {
                    image: image.to_owned(),
                    ..self.arguments.clone()
                });
            }
        };
        Err(Failure::new(
            2,
            format!("{of_one} is for one volume"),
            "Serve this volume alone.",
        ))
    }

    /// The file with the header: what the user says, or what an encryption or
    /// decryption in place that was stopped has left.
    pub fn header_path(&self) -> Option<PathBuf> {
        let side = || Some(self.names.side_header(&self.image)).filter(|side| side.exists());
        self.header.clone().or_else(side)
    }

    /// Opens the volume and its detached header. If they are opened for writing, no
    /// other process may use them. Reading locks out no other reader.
    pub fn devices(&self, use_: Use) -> Result<Devices, Failure> {
        if use_.hold(false) == Hold::Brief {
            operate::check_in_place(&self.site())?;
        }
        self.opened(|path, is_apart| self.names.open(path, use_.of_data(is_apart)))
    }

    /// Opens both for reading, and keeps other processes from writing to them meanwhile.
    pub fn steady_devices(&self) -> Result<Devices, Failure> {
        self.opened(|path, _| self.names.steady(path))
    }

    /// Refuses a volume whose header [`devices`](Self::devices) would refuse to change.
    pub fn check_free(&self) -> Result<(), Failure> {
        operate::check_in_place(&self.site())?;
        let path = self.header_path();
        let path = path.as_deref().unwrap_or(&self.image);
        self.names.check_free(path, Use::ChangeHeader)
    }

    /// Opens each device by `open`, which is told whether it is without the header. Refuses a header
    /// beside the volume that is not its own. One that is used is named once.
    fn opened(
        &self,
        open: impl Fn(&Path, bool) -> Result<Disk, Failure>,
    ) -> Result<Devices, Failure> {
        let Some(path) = self.header_path() else {
            return Ok(Devices {
                data: open(&self.image, false)?,
                header: None,
                is_beside: false,
            });
        };
        if self.header.is_none() {
            self.site().check_beside()?;
            self.names.beside_noted.get_or_init(|| {
                eprintln!(
                    "note: a reencryption of {} was interrupted, and {} has its header",
                    self.image.display(),
                    path.display()
                );
            });
        }
        check_distinct("--header", &path, &self.image)?;
        Ok(Devices {
            header: Some(open(&path, false)?),
            data: open(&self.image, true)?,
            is_beside: self.header.is_none(),
        })
    }

    /// The processes that have the volume or its header open for writing, as far as this can be
    /// known.
    pub fn writers(&self) -> Option<String> {
        let header = self.header_path();
        disk::writers(std::iter::once(&*self.image).chain(header.as_deref()))
    }

    /// Refuses an argument that is the volume itself, or its header.
    ///
    /// # Errors
    /// Exit code 2.
    pub fn check_distinct(&self, option: &str, path: &Path) -> Result<(), Failure> {
        check_distinct(option, path, &self.image)?;
        let header = self.header_path();
        header.map_or(Ok(()), |header| check_distinct(option, path, &header))
    }

    /// The format: what the user says, or the signature.
    pub fn format(&self, header: &dyn BlockDevice) -> Result<Format, Failure> {
        if let Some(format) = self.chosen_format()? {
            self.check_beside(format)?;
            volume::check_searched(format, &self.plain_parameters(), header)?;
            return Ok(format);
        }
        let path = self.header.as_ref().unwrap_or(&self.image);
        volume::detect(header).map_err(|error| losses::at(path, recognise::with_text(path, error)))
    }

    /// The options as the engine wants them, for this access with these losses accepted.
    pub fn open_options<'a>(
        &self,
        access: Access,
        accepted: &'a [State],
    ) -> Result<OpenOptions<'a>, Failure> {
        Ok(OpenOptions {
            format: self.chosen_format()?,
            parameters: self.parameters()?,
            access,
            accepted,
            limits: limits()?,
            ..OpenOptions::default()
        })
    }

    /// The format that the user names, if it is one.
    fn chosen_format(&self) -> Result<Option<Format>, Failure> {
        let name = self.kind.as_deref().filter(|name| *name != "luks");
        Ok(name.map(Format::parse).transpose()?)
    }

    /// Refuses a type that the volume does not have while it is being reencrypted.
    fn check_beside(&self, format: Format) -> Result<(), Failure> {
        self.site().check_format(format).map_err(|error| {
            let remedy = format!(
                "{} has its keys. Continue with `cryptmark volume reencrypt`. To open it now, omit \
                 --type.",
                self.names.side_header(&self.image).display()
            );
            Failure::from(error).with_remedy(remedy)
        })
    }

    /// Refuses another type than the header's, and options that a header of LUKS has no use for.
    /// Without a header, the command says so itself.
    pub fn check_luks(&self, header: &dyn BlockDevice) -> Result<(), Failure> {
        // One that is damaged may be mended, or replaced.
        let found = Format::detect(header).ok().flatten();
        let found = found.or(self.named_format()).unwrap_or(Format::Luks2);
        match self.named_format() {
            Some(named) if named != found => Err(VolumeError::NotThis { format: named }.into()),
            _ => self.refuse_foreign_options(found),
        }
    }

    /// Format and options as the engine wants them.
    pub fn opening(&self, format: Format) -> Result<Opening, Failure> {
        self.refuse_foreign_options(format)?;
        Ok(self.parameters()?.opening(format)?)
    }

    /// Refuses an option that the format has no use for, because it is a mistake. It also refuses a
    /// header that is out of date because the volume is being reencrypted.
    pub fn refuse_foreign_options(&self, format: Format) -> Result<(), Failure> {
        self.check_beside(format)?;
        if self.header.is_some() && !matches!(format, Format::Luks1 | Format::Luks2) {
            return Err(VolumeError::Foreign {
                parameter: "header",
                format,
                formats: &[Format::Luks1, Format::Luks2],
            }
            .into());
        }
        Ok(self.plain_parameters().check(format)?)
    }
}
