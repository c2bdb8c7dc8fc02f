"""Volumes made and changed: their data, headers, key slots and passwords."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Optional

from . import _native
from ._call import call
from ._source import Path

Ask = Callable[[str, str], Any]
Progress = Callable[[int, int], Any]


def create(
    path: Path,
    format: str = "luks2",
    passphrase: Any = None,
    *,
    key_file: Any = None,
    volume_key: Any = None,
    size: Optional[int] = None,
    header: Optional[Path] = None,
    cipher: Optional[str] = None,
    key_size: Optional[int] = None,
    hash: Optional[str] = None,
    sector_size: Optional[int] = None,
    integrity: Optional[str] = None,
    offset: Optional[int] = None,
    label: Optional[str] = None,
    subsystem: Optional[str] = None,
    uuid: Optional[str] = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    pbkdf: Optional[str] = None,
    iter_time: Optional[int] = None,
    allow_empty: bool = False,
    wipe: bool = False,
    quick: bool = False,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
    progress: Optional[Progress] = None,
) -> Dict[str, Any]:
    """Makes a volume in the file or on the block device at `path`, and returns what it is.

    `format` is "luks2", "luks1", "veracrypt" or "tcrypt"; or "plain" or "cryptoloop", which are
    noise until they are used. A file that does not exist is made, `size` bytes long with its
    header. `header` is a file for the header of a LUKS volume.

    `passphrase` or `key_file` opens the volume then, as for `open`. `volume_key` is the key of the
    data; a random one is best. Opening takes about `iter_time` milliseconds on this machine, which
    are 2000 if you name none. `pbkdf` is "pbkdf2", "argon2i" or "argon2id".

    `cipher`, `hash` and the sizes are those of cryptsetup; `key_size` is in bits, the others in
    bytes. `integrity` gives each sector of LUKS2 a tag. `wipe` overwrites all old data. `quick`
    leaves out the noise of VeraCrypt, or the first writing of sectors with tags.

    Nothing is overwritten unasked: `Protected` has the name of what would be lost as `question`.
    `allow` accepts losses by these names. Or `ask(loss, found)` is called, and true accepts.
    `progress(done, total)` is told of bytes. An exception of either, or Ctrl-C, ends the work.
    """
    given = dict(locals())
    given["data_key"] = given.pop("volume_key")
    return call(_native.create, given)


def create_hidden(
    path: Path,
    outer_passphrase: Any,
    passphrase: Any,
    size: int,
    *,
    format: str = "veracrypt",
    outer_pim: Optional[int] = None,
    outer_keyfiles: Optional[Iterable[Path]] = None,
    cipher: Optional[str] = None,
    hash: Optional[str] = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
    progress: Optional[Progress] = None,
) -> int:
    """Makes a hidden volume of `size` bytes at the end of the VeraCrypt or TrueCrypt volume at `path`.

    Returns the length of its data. What the outer volume has there is lost, and so is another hidden
    volume, which only its passphrase shows: that is asked for as in `create`.
    """
    given = dict(locals())
    names = ("passphrase", "cipher", "hash", "veracrypt_pim", "keyfiles")
    hidden = {name: given.pop(name) for name in names}
    given["passphrase"] = given.pop("outer_passphrase")
    given["veracrypt_pim"] = given.pop("outer_pim")
    given["keyfiles"] = given.pop("outer_keyfiles")
    return call(_native.create_hidden, given, hidden)


def convert(path: Path, format: str, *, header: Optional[Path] = None) -> bool:
    """Makes the LUKS volume at `path` one of `format`, "luks1" or "luks2".

    Returns whether it was another one. Key slots and data stay.
    """
    return call(_native.convert, locals())


def resize(
    path: Path,
    size: int,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    format: Optional[str] = None,
    header: Optional[Path] = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
) -> int:
    """Makes the volume at `path`, with its header, `size` bytes long; returns the length of its data.

    A volume of LUKS needs no secret. One of `format` "tcrypt" or "veracrypt" can only become larger.
    Data that would be cut off are asked for as in `create`.
    """
    return call(_native.resize, locals())


def change_password(
    path: Path,
    format: str,
    passphrase: Any = None,
    new_passphrase: Any = None,
    *,
    key_file: Any = None,
    new_key_file: Any = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    tcrypt_hidden: bool = False,
    allow_empty: bool = False,
) -> None:
    """Gives the volume at `path`, of `format` "tcrypt" or "veracrypt", another passphrase.

    The PIM and the key files stay. The header and its copy are written anew.
    """
    return call(_native.change_password, locals())


def backup_header(
    path: Path, output: Path, *, format: Optional[str] = None, header: Optional[Path] = None
) -> str:
    """Copies the header and key slots of the volume at `path` to the new file `output`.

    Returns whose header it is. Keep the file as secret as the volume. TrueCrypt and VeraCrypt need
    their `format`.
    """
    return call(_native.backup_header, locals())


def restore_header(
    path: Path,
    input: Path,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    format: Optional[str] = None,
    header: Optional[Path] = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    tcrypt_hidden: bool = False,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
) -> str:
    """Puts the header and key slots in `input` back, and with them the passphrases of that time.

    Returns what was done. TrueCrypt and VeraCrypt need their `format`, and the passphrase of then.
    What would be lost is asked for as in `create`.
    """
    return call(_native.restore_header, locals())


def repair_header(
    path: Path,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    format: Optional[str] = None,
    header: Optional[Path] = None,
    uuid: Optional[str] = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    tcrypt_hidden: bool = False,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
) -> str:
    """Mends a header from its other copy, or from the remains of both. Returns what was done.

    A secret proves that a rebuilt header of LUKS is right; TrueCrypt and VeraCrypt need it, and
    their `format`. `uuid` is for a header that has lost its own.
    """
    return call(_native.repair_header, locals())


def reencrypt(
    path: Path,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    format: Optional[str] = None,
    keep: Iterable[Any] = (),
    header: Optional[Path] = None,
    key_slot: Optional[int] = None,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    tcrypt_hidden: bool = False,
    cipher: Optional[str] = None,
    key_size: Optional[int] = None,
    hash: Optional[str] = None,
    sector_size: Optional[int] = None,
    pbkdf: Optional[str] = None,
    iter_time: Optional[int] = None,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
    progress: Optional[Progress] = None,
) -> None:
    """Gives the data of the volume at `path` another key, and another cipher if you name one.

    It is a LUKS2 volume, or with `format` "tcrypt" or "veracrypt" one of those. The secret that opens
    the volume stays, and so do the passphrases in `keep`. All other key slots are lost, which is
    asked for as in `create`. Calling it again continues what was stopped; the volume opens at any
    time, and needs the file `path` + ".cryptmark-header" if there is one meanwhile. Make a backup of
    the header first.
    """
    call(_native.reencrypt, {**locals(), "change": "reencrypt"})


def encrypt(
    path: Path,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    header: Optional[Path] = None,
    cipher: Optional[str] = None,
    key_size: Optional[int] = None,
    hash: Optional[str] = None,
    sector_size: Optional[int] = None,
    pbkdf: Optional[str] = None,
    iter_time: Optional[int] = None,
    allow_empty: bool = False,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
    progress: Optional[Progress] = None,
) -> None:
    """Encrypts the data at `path` where they are, as a LUKS2 volume with this secret.

    A file gets room for the header, and is longer by it; for a device, name a file with `header`.
    Calling it again continues what was stopped. Have a copy of the data first.
    """
    call(_native.reencrypt, {**locals(), "change": "encrypt"})


def decrypt(
    path: Path,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    header: Optional[Path] = None,
    key_slot: Optional[int] = None,
    allow: Iterable[str] = (),
    ask: Optional[Ask] = None,
    progress: Optional[Progress] = None,
) -> None:
    """Decrypts the LUKS2 volume at `path` where it is, for good.

    The header goes, and a file is shorter by it. Calling it again continues what was stopped. Have a
    copy of the data first.
    """
    call(_native.reencrypt, {**locals(), "change": "decrypt"})


def add_key(
    path: Path,
    passphrase: Any = None,
    new_passphrase: Any = None,
    *,
    key_file: Any = None,
    volume_key: Any = None,
    new_key_file: Any = None,
    header: Optional[Path] = None,
    key_slot: Optional[int] = None,
    new_key_slot: Optional[int] = None,
    pbkdf: Optional[str] = None,
    iter_time: Optional[int] = None,
    allow_empty: bool = False,
) -> int:
    """Adds a key slot to the LUKS volume at `path`, and returns its number.

    The secrets are as for `open`. The first of `passphrase`, `key_file` and `volume_key` opens the
    volume now, and `key_slot` is the slot that it opens. `new_passphrase` or `new_key_file` opens
    it afterwards as well. Opening it so takes about `iter_time` milliseconds on this machine, which
    are 2000 if you name none. `pbkdf` is "pbkdf2", "argon2i" or "argon2id"; the default is the last
    one, and for LUKS1 the first.

    No other program may have the volume open for writing. Make a backup of the header first.
    """
    return call(_native.add_key, locals())


def change_key(
    path: Path,
    passphrase: Any = None,
    new_passphrase: Any = None,
    *,
    key_file: Any = None,
    volume_key: Any = None,
    new_key_file: Any = None,
    header: Optional[Path] = None,
    key_slot: Optional[int] = None,
    pbkdf: Optional[str] = None,
    iter_time: Optional[int] = None,
    allow_empty: bool = False,
) -> int:
    """Gives a key slot of the LUKS volume at `path` another secret, and returns its number.

    The arguments are those of `add_key`. The old secret opens the volume until the new one does.
    LUKS1 keeps the new one in another slot.
    """
    return call(_native.change_key, locals())


def remove_key(
    path: Path,
    passphrase: Any = None,
    *,
    key_file: Any = None,
    volume_key: Any = None,
    header: Optional[Path] = None,
    key_slot: Optional[int] = None,
    last_too: bool = False,
) -> int:
    """Removes `key_slot` of the LUKS volume at `path`, or the slot that the secret opens.

    Returns the slot's number. Some secret of the volume is needed for either. `Protected` is raised
    for the last slot, unless you allow that with `last_too`: the data are lost then.
    """
    return call(_native.remove_key, locals())
