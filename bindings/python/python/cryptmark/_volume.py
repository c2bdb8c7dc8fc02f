"""`Volume`, an encrypted volume as a file, and `open`."""

from __future__ import annotations

import contextlib
import io
import json
import os
from typing import Any, Dict, Iterable, Optional, Union

from . import _native, _source
from ._call import bytes_of, call
from ._errors import Failed
from ._source import File, Path

#: What is copied at a time between a caller's buffer and the engine. It stays in the CPU's cache.
_PIECE = 256 << 10

_MODES = {"rb": False, "r+b": True, "rb+": True}


class Volume(io.RawIOBase):
    """An open encrypted volume, which `cryptmark.open` makes.

    It is a file of its decrypted bytes, without a buffer. `pread` and `pwrite` may be called from
    any number of threads. What is written is on the storage after `flush`.

    The volume belongs to the process that opened it. A forked one cannot use it.

    A volume in a file object serves one thread at a time, and the others wait.
    """

    _handle: Optional[_native.Handle] = None
    #: What is closed after the volume, if it belongs to nobody else.
    _below: Optional[contextlib.ExitStack] = None

    def __init__(self, handle: _native.Handle, name: Any, writable: bool) -> None:
        if not isinstance(handle, _native.Handle):
            raise TypeError("use cryptmark.open() to open a volume")
        self._handle = handle
        self._process = os.getpid()
        self._writable = writable
        #: The path, as it was given, or the name of the file object.
        self.name = name
        #: The mode, as files name it.
        self.mode = "rb+" if writable else "rb"

    def _open(self) -> _native.Handle:
        if self._handle is None or self.closed:
            raise ValueError("I/O operation on closed volume")
        return self._handle

    @property
    def size(self) -> int:
        """Bytes of the volume."""
        return self._open().size

    @property
    def info(self) -> Dict[str, Any]:
        """What is known of the volume, without any secret."""
        said: Dict[str, Any] = json.loads(self._open().info)
        return said

    def readable(self) -> bool:
        self._open()
        return True

    def seekable(self) -> bool:
        self._open()
        return True

    def writable(self) -> bool:
        self._open()
        return self._writable

    def read(self, size: Optional[int] = -1, /) -> bytes:
        """At most `size` bytes from the position on, or all to the end of the volume."""
        size = -1 if size is None else size
        return self.readall() if size < 0 else self._open().read(size)

    def readall(self) -> bytes:
        """All bytes from the position to the end of the volume."""
        handle = self._open()
        return handle.read(handle.size)

    def readinto(self, buffer: Any, /) -> int:
        """Fills `buffer` with bytes from the position on, and returns how many there were."""
        handle = self._open()
        # The buffer is copied into while Python's lock is held, and cannot be resized meanwhile.
        with memoryview(buffer) as whole, bytes_of(whole) as view:
            if view.readonly:
                raise TypeError("the buffer to read into is read-only")
            done = 0
            while done < len(view):
                piece = handle.read(min(_PIECE, len(view) - done))
                if not piece:
                    break
                view[done : done + len(piece)] = piece
                done += len(piece)
            return done

    def write(self, data: Any, /) -> int:
        """Writes what there is room for, and returns how many bytes that is."""
        handle = self._to_write()
        if type(data) is bytes:
            return handle.write(data)
        with memoryview(data) as whole, bytes_of(whole) as view:
            done = 0
            while done < len(view):
                piece = bytes(view[done : done + _PIECE])
                written = handle.write(piece)
                done += written
                if written < len(piece):
                    break
            return done

    def pread(self, n: int, offset: int, /) -> bytes:
        """At most `n` bytes from byte `offset` on. There are less at the end of the volume only."""
        return self._open().pread(n, offset)

    def pwrite(self, data: Any, offset: int, /) -> int:
        """Writes all of `data` at byte `offset`, or fails before it writes anything."""
        handle = self._to_write()
        if type(data) is not bytes:
            with memoryview(data) as whole, bytes_of(whole) as view:
                data = bytes(view)
        handle.pwrite(data, offset)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Sets the position, and returns it."""
        return self._open().seek(offset, whence)

    def tell(self) -> int:
        """The position."""
        return self._open().seek(0, io.SEEK_CUR)

    def flush(self) -> None:
        """Returns when everything written before is on the storage."""
        self._open().flush()

    def close(self) -> None:
        """Flushes and closes the volume. Its keys are overwritten, and its lock is given up."""
        if self._handle is None or self.closed:
            return
        try:
            super().close()
        except Failed:
            # A forked process has written nothing.
            if os.getpid() == self._process:
                raise
        finally:
            self._handle.close()
            if self._below is not None:
                self._below.close()

    def _to_write(self) -> _native.Handle:
        handle = self._open()
        if not self._writable:
            raise io.UnsupportedOperation("the volume is open for reading only")
        return handle

    def __getstate__(self) -> None:
        raise TypeError("a volume cannot be pickled or copied")

    def __repr__(self) -> str:
        if self._handle is None or self.closed:
            return f"<cryptmark.Volume name={getattr(self, 'name', None)!r} closed>"
        kind = self.info["format"]
        return (
            f"<cryptmark.Volume name={self.name!r} format={kind!r} size={self.size} "
            f"mode={self.mode!r}>"
        )


Volume.__module__ = "cryptmark"


def open(
    file: Union[Path, File],
    passphrase: Any = None,
    *,
    key_file: Any = None,
    volume_key: Any = None,
    format: Optional[str] = None,
    mode: str = "rb",
    header: Union[None, Path, File] = None,
    cipher: Optional[str] = None,
    key_size: Optional[int] = None,
    hash: Optional[str] = None,
    offset: Optional[int] = None,
    skip: Optional[int] = None,
    size: Optional[int] = None,
    sector_size: Optional[int] = None,
    iv_large_sectors: bool = False,
    key_slot: Optional[int] = None,
    tcrypt_hidden: bool = False,
    tcrypt_backup: bool = False,
    tcrypt_system: bool = False,
    veracrypt_pim: Optional[int] = None,
    keyfiles: Optional[Iterable[Path]] = None,
    key_derivation: Optional[str] = None,
    experimental: bool = False,
    allow: Iterable[str] = (),
) -> Volume:
    """Opens the encrypted volume in `file`.

    `file` is the path of a file or of a block device, or a binary file object with `seek`, `tell`
    and `read` or `readinto`. A mode of "r+b" also needs its `write` and `flush`. The object stays
    yours. It is not locked and not closed, and its position changes. Do not use it while the volume
    is open.

    Give one secret at most:

    * `passphrase`: a str, which is encoded as UTF-8, or bytes.
    * `key_file`: the path of a key file as a str or `os.PathLike`, or its content as bytes.
    * `volume_key`: the bytes of the key that encrypts the data.

    `format` is one of `formats()`; None finds it by its signature. `mode` is "rb" or "r+b".
    `header` is a header that is not in the volume itself, as a path or a file object. `keyfiles`
    are paths of key files of TrueCrypt and VeraCrypt, which are used with the passphrase.

    The other arguments are those that volumes without a header need. `offset` and `size` are bytes,
    `key_size` is in bits, and `skip` counts 512-byte units.

    `allow` names losses that you accept when you write, such as "unknown" for data that decrypt to
    noise. The remedy of a `Protected` names the one that stopped it.

    Raises `Error` with a `remedy`. An exception of a file object is its `__cause__`.
    """
    given = dict(locals())
    write = given["write"] = writes(given.pop("mode"))
    source = given["file"] = _source.of(file, write=write)
    if header is not None:
        given["header"] = _source.of(header)
    handle = call(_native.open, given)
    name = source if isinstance(source, str) else getattr(source, "name", None)
    return Volume(handle, name, write)


def writes(mode: str) -> bool:
    """Whether a volume of that mode is written. ValueError if there is no such mode."""
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"mode must be 'rb' or 'r+b', not {mode!r}")
    return _MODES[mode]


def info(file: Union[Path, File], format: Optional[str] = None) -> Dict[str, Any]:
    """What the header of the volume in `file` says without any secret.

    `file` is a path or a file object, as for `open`.
    """
    said: Dict[str, Any] = json.loads(_native.header(_source.of(file), format))
    return said
