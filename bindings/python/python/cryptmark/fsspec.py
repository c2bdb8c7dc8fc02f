"""Volumes as files of fsspec: `fsspec.open("cryptmark://disk.img", passphrase=…)`.

A file system has one file for each volume, whose path is that of the volume. Its options are the
arguments of `cryptmark.open`, and it keeps them, the secret included, as long as it is used.
"""

from __future__ import annotations

import io
from typing import Any, Dict, List, Union

from fsspec.spec import AbstractFileSystem

from ._volume import open as open_volume


class CryptmarkFileSystem(AbstractFileSystem):
    """The decrypted content of volumes."""

    protocol = "cryptmark"
    # fsspec's cache would keep the secret for ever.
    cachable = False

    def _open(
        self, path: str, mode: str = "rb", **_: Any
    ) -> Union[io.BufferedReader, io.BufferedRandom]:
        volume = open_volume(path, mode=mode, **self.storage_options)
        return io.BufferedRandom(volume) if volume.writable() else io.BufferedReader(volume)

    def info(self, path: str, **_: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        with open_volume(path, **self.storage_options) as volume:
            return {"name": path, "size": volume.size, "type": "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> List[Any]:
        found = self.info(path)
        return [found if detail else found["name"]]
