"""Volumes as files of fsspec: `fsspec.open("cryptmark://disk.img", passphrase=…)`.

A file system has one file for each volume, whose path is that of the volume. With another file
system behind it, as in `cryptmark::https://…`, it has one file, whose path is empty.

Its options are the arguments of `cryptmark.open`, and it keeps them, the secret included, as long as
it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from typing import Any, Dict, Iterator, List, Optional, Union

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem

from ._volume import Volume, open as open_volume, writes

_SECRETS = ("passphrase", "key_file", "volume_key", "password")

#: Makes tokens useless to anyone who guesses secrets.
_TOKENS = os.urandom(32)


class CryptmarkFileSystem(AbstractFileSystem):
    """The decrypted content of volumes.

    `fo` is the volume: the URL of a file, or a file object. `target_protocol` and `target_options`
    are for the file system of that URL. Without `fo`, files are volumes of this machine.
    """

    protocol = "cryptmark"
    # fsspec's cache would keep the secret for ever.
    cachable = False

    def __init__(
        self,
        fo: Any = None,
        target_protocol: Optional[str] = None,
        target_options: Optional[Dict[str, Any]] = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._fo = fo
        self._target = dict(target_options or {})
        if target_protocol is not None:
            self._target["protocol"] = target_protocol
        self._options = options

    @property
    def _fs_token(self) -> str:
        # fsspec's own is a hash of all options, which tells the secret to those who guess.
        token = self._fs_token_.encode()
        return hashlib.blake2b(token, key=_TOKENS, digest_size=16).hexdigest()

    def to_dict(self, **arguments: Any) -> Dict[str, Any]:
        said = super().to_dict(**arguments)
        return said if arguments.get("include_password", True) else _without_secrets(said)

    def _open(
        self, path: str, mode: str = "rb", **_: Any
    ) -> Union[io.BufferedReader, io.BufferedRandom]:
        with contextlib.ExitStack() as opened:
            volume = opened.enter_context(self._volume(path, mode))
            volume._below = opened.pop_all()
            return io.BufferedRandom(volume) if volume.writable() else io.BufferedReader(volume)

    @contextlib.contextmanager
    def _volume(self, path: str, mode: str = "rb") -> Iterator[Volume]:
        if self._fo is not None and path:
            raise FileNotFoundError(path)
        # Other modes would empty the file.
        mode = "r+b" if writes(mode) else "rb"
        with contextlib.ExitStack() as opened:
            source = path if self._fo is None else self._fo
            if isinstance(self._fo, (str, os.PathLike)):
                system, source = url_to_fs(self._fo, **self._target)
                # The engine locks local files and flushes them, which fsspec's objects do not.
                if not isinstance(system, LocalFileSystem):
                    source = opened.enter_context(system.open(source, mode))
            yield opened.enter_context(open_volume(source, mode=mode, **self._options))

    def info(self, path: str, **_: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        with self._volume(path) as volume:
            return {"name": path, "size": volume.size, "type": "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> List[Any]:
        found = self.info(path)
        return [found if detail else found["name"]]


def _without_secrets(options: Dict[str, Any]) -> Dict[str, Any]:
    return {
        name: _without_secrets(value) if isinstance(value, dict) else value
        for name, value in options.items()
        if name not in _SECRETS
    }
