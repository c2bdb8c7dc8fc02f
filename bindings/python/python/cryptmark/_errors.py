"""The exceptions of cryptmark."""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """Why a volume could not be opened, read or written."""

    #: What you can do about it, in one or two sentences.
    remedy: str = ""


class BadInput(Error, ValueError):
    """An argument, a header or a file cannot be used."""


class NotFound(BadInput, FileNotFoundError):
    """There is no file of that name."""


class Denied(BadInput, PermissionError):
    """The system does not let this user open the file."""


class WrongSecret(Error):
    """The passphrase or key opens nothing."""


class Protected(Error):
    """Refused, because data would be lost or another program uses the volume."""

    #: The name of the loss that `allow` accepts; None if nothing can be allowed.
    question: Optional[str] = None


class Failed(Error, OSError):
    """The operation was possible and failed."""


_KINDS = {
    kind.__name__: kind for kind in (BadInput, NotFound, Denied, WrongSecret, Protected, Failed)
}


def make(kind: str, message: str, remedy: str, errno: Optional[int]) -> Error:
    """An exception for `cryptmark._native`, which raises it."""
    error = _KINDS[kind](message)
    error.remedy = remedy
    if errno is not None and isinstance(error, OSError):
        error.errno = errno
    return error


for _kind in (Error, *_KINDS.values()):
    _kind.__module__ = "cryptmark"
