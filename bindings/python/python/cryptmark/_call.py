"""How the package's functions hand their arguments to the engine."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Tuple, TypeVar, Union

Result = TypeVar("Result")

#: The secrets of the engine, and of which kinds the arguments are that may be one.
_SECRETS = {
    "secret": {"passphrase": "passphrase", "key_file": "key_file", "volume_key": "volume_key"},
    "new_secret": {"new_passphrase": "passphrase", "new_key_file": "key_file"},
    "data_key": {"data_key": "volume_key"},
}


def call(native: Callable[..., Result], *given: Dict[str, Any]) -> Result:
    """What `native` makes of arguments, which are dictionaries by their names.

    The copies of secrets are overwritten afterwards.
    """
    copies: List[bytearray] = []
    try:
        return native(*[_with_secrets(arguments, copies) for arguments in given])
    finally:
        for copy in copies:
            copy[:] = bytes(len(copy))


def _with_secrets(given: Dict[str, Any], copies: List[bytearray]) -> Dict[str, Any]:
    arguments = dict(given)
    for name, kinds in _SECRETS.items():
        secrets = {one: arguments.pop(one, None) for one in kinds}
        chosen = [one for one, secret in secrets.items() if secret is not None]
        if len(chosen) > 1:
            raise ValueError(f"give one secret, not both {chosen[0]} and {chosen[1]}")
        for one in chosen:
            arguments[name] = _secret(kinds[one], secrets[one], copies)
    if "keep" in arguments:
        kept = arguments.pop("keep")
        arguments["kept"] = [_secret("passphrase", secret, copies) for secret in kept]
    return arguments


def _secret(
    kind: str, secret: Any, copies: List[bytearray]
) -> Union[str, Tuple[str, bytearray]]:
    """The path of a key file, which the engine reads, or the kind of a secret and a copy of it."""
    if kind == "key_file" and isinstance(secret, (str, os.PathLike)):
        return os.fsdecode(secret)
    if kind == "passphrase" and isinstance(secret, str):
        copy = bytearray(secret, "utf-8")
    else:
        with memoryview(secret) as whole, bytes_of(whole) as view:
            copy = bytearray(view)
    copies.append(copy)
    return kind, copy


def bytes_of(view: memoryview) -> memoryview:
    """The bytes of a buffer of any shape. TypeError if it is not contiguous."""
    # An array without elements cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(bytearray())
