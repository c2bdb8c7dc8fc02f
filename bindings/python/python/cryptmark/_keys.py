"""Key slots of LUKS volumes: `add_key`, `change_key` and `remove_key`."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from . import _native
from ._source import Path
from ._volume import _secret


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
    return _change(
        path,
        (passphrase, key_file, volume_key),
        (new_passphrase, new_key_file),
        True,
        header=header,
        key_slot=key_slot,
        new_key_slot=new_key_slot,
        pbkdf=pbkdf,
        iter_time=iter_time,
        allow_empty=allow_empty,
    )


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
    return _change(
        path,
        (passphrase, key_file, volume_key),
        (new_passphrase, new_key_file),
        False,
        header=header,
        key_slot=key_slot,
        pbkdf=pbkdf,
        iter_time=iter_time,
        allow_empty=allow_empty,
    )


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
    return _change(
        path,
        (passphrase, key_file, volume_key),
        None,
        False,
        header=header,
        key_slot=key_slot,
        last_too=last_too,
    )


def _change(path: Path, secrets: Any, new_secrets: Any, keeps_old: bool, **options: Any) -> int:
    names = ("header", "key_slot", "new_key_slot", "pbkdf", "iter_time")
    named: Dict[str, Any] = dict.fromkeys(names)
    named.update(allow_empty=False, last_too=False)
    named.update(options)
    if named["header"] is not None:
        named["header"] = os.fsdecode(named["header"])
    given, copy = _secret(*secrets)
    new, new_copy = (None, bytearray()) if new_secrets is None else _secret(*new_secrets, None)
    try:
        if given is None:
            raise ValueError("give the secret that opens the volume now")
        if new is None and new_secrets is not None:
            raise ValueError("give new_passphrase or new_key_file")
        return _native.change_keys(os.fsdecode(path), given, new, keeps_old, named)
    finally:
        for secret in (copy, new_copy):
            secret[:] = bytes(len(secret))
