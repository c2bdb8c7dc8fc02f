"""The door of Python: answers questions about volumes, as doors/asked.rs writes them."""

import json
import os
import sys

import cryptmark

ENDS = 1 << 20
SECRETS = ("passphrase", "key_file", "volume_key")
NUMBERS = ("key_size", "offset", "skip", "size", "sector_size", "key_slot", "veracrypt_pim")
FLAGS = ("iv_large_sectors", "tcrypt_hidden", "tcrypt_backup", "tcrypt_system", "experimental")

#: The exceptions, and the codes of the program that mean the same.
CODES = {
    cryptmark.Failed: 1,
    cryptmark.BadInput: 2,
    cryptmark.NotFound: 2,
    cryptmark.Denied: 2,
    cryptmark.WrongSecret: 3,
    cryptmark.Protected: 4,
}


def used(volume, output, data):
    """The first and the last bytes go to the file `output`, and `data` to the start."""
    if data is not None:
        volume.pwrite(data, 0)
        volume.flush()
        return
    if output is None:
        return
    with open(output, "wb") as file:
        file.write(volume.pread(ENDS, 0))
        file.write(volume.pread(ENDS, volume.size - ENDS if volume.size > ENDS else volume.size))


def answer(path, output, data, arguments):
    try:
        with cryptmark.open(path, **arguments) as volume:
            used(volume, output, data)
            info = json.dumps(volume.info)
            return f"opened {volume.size} {info.encode().hex()}"
    except cryptmark.Error as error:
        question = getattr(error, "question", None) or "-"
        return f"refused {CODES[type(error)]} {question} {str(error).encode().hex()}"


asked = {"data": None, "output": None}
arguments = {}
for line in sys.stdin:
    command, *rest = line.split()
    value = bytes.fromhex(rest[-1]) if rest and (command, len(rest)) != ("secret", 1) else b""
    if command in ("path", "output"):
        asked[command] = os.fsdecode(value)
    elif command == "data":
        asked["data"] = value
    elif command == "secret":
        arguments[SECRETS[int(rest[0])]] = value
    elif command == "option":
        name, value = rest[0], os.fsdecode(value)
        if name in ("keyfile", "allow"):
            arguments.setdefault({"keyfile": "keyfiles"}.get(name, name), []).append(value)
        elif name == "write":
            arguments["mode"] = "r+b" if value == "1" else "rb"
        elif name in NUMBERS:
            arguments[name] = int(value)
        elif name in FLAGS:
            arguments[name] = value == "1"
        else:
            arguments[name] = value
    else:
        print(answer(asked["path"], asked["output"], asked["data"], arguments), flush=True)
        asked, arguments = {"data": None, "output": None}, {}
