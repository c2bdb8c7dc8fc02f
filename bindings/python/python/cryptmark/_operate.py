"""Volumes made and changed: `create`, `convert`, `resize`, and their headers and passwords."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from . import _native
from ._source import Path
from ._volume import _paths, _secret

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
    options = _options(
        format=format,
        header=header,
        size=size,
        cipher=cipher,
        key_size=key_size,
        hash=hash,
        sector_size=sector_size,
        integrity=integrity,
        offset=offset,
        label=label,
        subsystem=subsystem,
        uuid=uuid,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
        pbkdf=pbkdf,
        iter_time=iter_time,
        allow_empty=allow_empty,
        wipe=wipe,
        quick=quick,
        allow=allow,
        ask=ask,
        progress=progress,
    )
    with _secrets((passphrase, key_file, None), (None, None, volume_key)) as (secret, key):
        return _native.create(os.fsdecode(path), secret, key, options)


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
    outer = _options(
        format=format,
        veracrypt_pim=outer_pim,
        keyfiles=_paths(outer_keyfiles),
        allow=allow,
        ask=ask,
        progress=progress,
    )
    hidden = _options(
        format=format,
        cipher=cipher,
        hash=hash,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
    )
    with _secrets((outer_passphrase, None, None), (passphrase, None, None)) as (old, new):
        if old is None or new is None:
            raise ValueError("give both passphrases")
        return _native.create_hidden(os.fsdecode(path), size, (old, outer), (new, hidden))


def convert(path: Path, format: str, *, header: Optional[Path] = None) -> bool:
    """Makes the LUKS volume at `path` one of `format`, "luks1" or "luks2".

    Returns whether it was another one. Key slots and data stay.
    """
    return _native.convert(os.fsdecode(path), _options(format=format, header=header))


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
    options = _options(
        format=format,
        header=header,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
        allow=allow,
        ask=ask,
    )
    with _secrets((passphrase, key_file, None)) as (secret,):
        return _native.resize(os.fsdecode(path), size, secret, options)


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
    options = _options(
        format=format,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
        tcrypt_hidden=tcrypt_hidden,
        allow_empty=allow_empty,
    )
    secrets = ((passphrase, key_file, None), (new_passphrase, new_key_file, None))
    with _secrets(*secrets) as (secret, new):
        if secret is None or new is None:
            raise ValueError("give the secret of now and the new one")
        _native.change_password(os.fsdecode(path), secret, new, options)


def backup_header(
    path: Path, output: Path, *, format: Optional[str] = None, header: Optional[Path] = None
) -> str:
    """Copies the header and key slots of the volume at `path` to the new file `output`.

    Returns whose header it is. Keep the file as secret as the volume. TrueCrypt and VeraCrypt need
    their `format`.
    """
    options = _options(format=format, header=header)
    return _native.backup_header(os.fsdecode(path), os.fsdecode(output), options)


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
    options = _options(
        format=format,
        header=header,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
        tcrypt_hidden=tcrypt_hidden,
        allow=allow,
        ask=ask,
    )
    with _secrets((passphrase, key_file, None)) as (secret,):
        return _native.mend_header(os.fsdecode(path), os.fsdecode(input), secret, options)


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
    options = _options(
        format=format,
        header=header,
        uuid=uuid,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
        tcrypt_hidden=tcrypt_hidden,
        allow=allow,
        ask=ask,
    )
    with _secrets((passphrase, key_file, None)) as (secret,):
        return _native.mend_header(os.fsdecode(path), None, secret, options)


def _options(**given: Any) -> Dict[str, Any]:
    """The options for the engine, with None or nothing for those that are not given."""
    names = "format header size cipher key_size hash sector_size offset key_slot veracrypt_pim"
    names += " keyfiles integrity label subsystem uuid pbkdf iter_time ask progress"
    options: Dict[str, Any] = dict.fromkeys(names.split())
    options.update(wipe=False, quick=False, allow_empty=False, tcrypt_hidden=False, allow=())
    options.update(given)
    if options["header"] is not None:
        options["header"] = os.fsdecode(options["header"])
    if isinstance(options["allow"], str):
        raise TypeError("allow must be a list of names")
    options["allow"] = list(options["allow"])
    return options


@contextmanager
def _secrets(*given: Any) -> Iterator[List[Any]]:
    """The secrets for the engine, whose copies are overwritten afterwards."""
    copies: List[bytearray] = []
    try:
        secrets = []
        for one in given:
            secret, copy = _secret(*one)
            copies.append(copy)
            secrets.append(secret)
        yield secrets
    finally:
        for copy in copies:
            copy[:] = bytes(len(copy))
