//! Hidden volumes of TrueCrypt and VeraCrypt made.

use super::create::CreateOptions;
use super::disk::Names;
use super::losses;
use super::open::searching;
use crate::cli::{Failure, print_done};
use volume::judge::Use;
use volume::operate::{HiddenCreation, KeySlotCost, NewKey, Options};
use volume::tcrypt::{Family, Keyfiles};
use volume::{Parameters, Place};

/// Makes a hidden volume at the end of the normal one.
pub fn hidden(
    options: &CreateOptions,
    family: Family,
    size: u64,
    names: &Names,
) -> Result<(), Failure> {
    let image = &options.image;
    let said = |error| losses::at(image, error);
    let creation = options.creation()?;
    let place = Place::of(names.open(image, Use::WriteData)?.device, None);
    let secret = options.secret.secret(family.format(), image)?;
    let outer = Options {
        format: Some(family.format()),
        parameters: Parameters {
            veracrypt_pim: options.outer_pim,
            keyfiles: Some(Keyfiles::read(&options.outer_keyfiles)?),
            ..Parameters::default()
        },
        accepted: losses::accepted(options.yes).to_vec(),
        ..Options::default()
    };
    let sized = (&creation, size);
    let begun = searching(|it| HiddenCreation::begin(&place, &secret, sized, &outer, it))?;
    let begun = begun.map_err(said)?;
    let new = NewKey {
        secret: options.new.secret_beside(image, begun.has_keyfiles())?,
        cost: KeySlotCost::default(),
        // What the user types was checked.
        allow_empty: true,
    };
    let made = begun.finish(&new).map_err(said)?;
    print_done(&format!(
        "{family} volume: {}, {}, {} bytes of data from {}\n",
        made.cipher,
        made.derivation,
        made.data.length,
        made.data.offset,
        family = family.format()
    ));
    Ok(())
}
