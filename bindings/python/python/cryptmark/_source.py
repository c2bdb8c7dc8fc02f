"""What a volume is read from: the path of a file or device, or a binary file object."""

from __future__ import annotations

import io
import os
from typing import Any, Protocol, Union

from ._errors import make

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


class File(Protocol):
    """A binary file object. For writing it also needs `write` and `flush`.

    It may have `readinto` in place of `read`.
    """

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = ..., /) -> Any: ...
    def tell(self) -> int: ...


def of(given: Any, *, write: bool = False) -> Any:
    """A path as a str, or a file object that can do what is needed. BadInput if it cannot."""
    if not _is_file(given):
        return os.fsdecode(given)
    if isinstance(given, io.TextIOBase):
        raise make("BadInput", "the file object has text", 'Open it in a binary mode: "rb".', None)
    remedy = "Copy its content to a file or to io.BytesIO, and open that."
    if not hasattr(given, "tell") or not _may(given, "seekable", "seek"):
        raise make("BadInput", "the file object cannot seek", remedy, None)
    remedy = 'Open it in a mode for reading, such as "rb" or "r+b".'
    if not _may(given, "readable"):
        raise make("BadInput", "the file object cannot be read", remedy, None)
    remedy = 'Open the file object in the mode "r+b", or the volume in the mode "rb".'
    if write and not (_may(given, "writable", "write") and hasattr(given, "flush")):
        raise make("BadInput", "the file object cannot be written", remedy, None)
    return given


def _is_file(given: Any) -> bool:
    if isinstance(given, (str, bytes)):
        return False
    reads = hasattr(given, "read") or hasattr(given, "readinto")
    # Some objects for paths have a method `read`, too.
    return reads and (hasattr(given, "seek") or not isinstance(given, os.PathLike))


def _may(given: Any, question: str, method: str = "") -> bool:
    """Whether it has the method, and does not deny that it can be used."""
    if method and not hasattr(given, method):
        return False
    return not hasattr(given, question) or bool(getattr(given, question)())
