"""Data encrypted anew, encrypted where they are, or decrypted."""

from __future__ import annotations

import os
from typing import Any, Iterable, Optional, Tuple

from . import _native
from ._operate import Ask, Progress, _options, _secrets
from ._source import Path
from ._volume import _paths


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
    options = _options(
        format=format,
        header=header,
        key_slot=key_slot,
        veracrypt_pim=veracrypt_pim,
        keyfiles=_paths(keyfiles),
        tcrypt_hidden=tcrypt_hidden,
        cipher=cipher,
        key_size=key_size,
        hash=hash,
        sector_size=sector_size,
        pbkdf=pbkdf,
        iter_time=iter_time,
        allow=allow,
        ask=ask,
        progress=progress,
    )
    _change("reencrypt", path, (passphrase, key_file), keep, options)


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
    options = _options(
        header=header,
        cipher=cipher,
        key_size=key_size,
        hash=hash,
        sector_size=sector_size,
        pbkdf=pbkdf,
        iter_time=iter_time,
        allow_empty=allow_empty,
        allow=allow,
        ask=ask,
        progress=progress,
    )
    _change("encrypt", path, (passphrase, key_file), (), options)


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
    options = _options(
        header=header,
        key_slot=key_slot,
        allow=allow,
        ask=ask,
        progress=progress,
    )
    _change("decrypt", path, (passphrase, key_file), (), options)


def _change(
    change: str,
    path: Path,
    secret: Tuple[Any, Any],
    keep: Iterable[Any],
    options: Any,
) -> None:
    kept = [(other, None, None) for other in keep]
    with _secrets((*secret, None), *kept) as (given, *others):
        if given is None:
            raise ValueError("give the secret that opens the volume")
        _native.reencrypt(os.fsdecode(path), change, given, others, options)
