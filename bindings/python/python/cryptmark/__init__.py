"""Encrypted volumes as Python files, without root.

    import cryptmark

    with cryptmark.open("disk.img", "correct horse") as volume:
        print(volume.info["format"], volume.size)
        first = volume.read(512)

`cryptmark.open` documents formats, secrets and parameters. Errors are `cryptmark.Error`.
"""

from ._errors import BadInput, Denied, Error, Failed, NotFound, Protected, WrongSecret
from ._native import formats
from ._operate import (
    add_key,
    backup_header,
    change_key,
    change_password,
    convert,
    create,
    create_hidden,
    decrypt,
    encrypt,
    reencrypt,
    remove_key,
    repair_header,
    resize,
    restore_header,
)
from ._run import Run, run
from ._volume import Volume, info, open

__all__ = [
    "BadInput",
    "Denied",
    "Error",
    "Failed",
    "NotFound",
    "Protected",
    "Run",
    "Volume",
    "WrongSecret",
    "add_key",
    "backup_header",
    "change_key",
    "change_password",
    "convert",
    "create",
    "create_hidden",
    "decrypt",
    "encrypt",
    "formats",
    "info",
    "open",
    "reencrypt",
    "remove_key",
    "repair_header",
    "resize",
    "restore_header",
    "run",
]
