"""The door of Python: answers questions about volumes, as doors/asked.rs writes them."""

import json
import os
import sys

import cryptmark

ENDS = 1 << 20
SECRETS = ("passphrase", "key_file", "volume_key")
NUMBERS = ("key_size", "offset", "skip", "size", "sector_size", "key_slot", "veracrypt_pim")
NUMBERS += ("iter_time",)
FLAGS = ("iv_large_sectors", "tcrypt_hidden", "tcrypt_backup", "tcrypt_system", "experimental")
FLAGS += ("quick",)

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


def change(command, path, value, arguments):
    secret = arguments.pop("passphrase", None)
    key_file = arguments.pop("key_file", None)
    arguments["key_file"] = key_file
    if command == "create":
        size = int(value) if value else None
        cryptmark.create(path, passphrase=secret, size=size, **arguments)
    elif command == "add":
        cryptmark.add_key(path, secret, value, **arguments)
    elif command in ("reencrypt", "encrypt", "decrypt"):
        getattr(cryptmark, command)(path, secret, **arguments)
    elif command == "convert":
        del arguments["key_file"]
        cryptmark.convert(path, **arguments)
    elif command == "resize":
        cryptmark.resize(path, int(value), secret, **arguments)
    elif command == "change" and "format" in arguments:
        cryptmark.change_password(path, passphrase=secret, new_passphrase=value, **arguments)
    elif command == "change":
        cryptmark.change_key(path, secret, value, **arguments)
    elif command == "repair":
        cryptmark.repair_header(path, secret, **arguments)
    else:
        cryptmark.restore_header(path, os.fsdecode(value), secret, **arguments)
    return "done"


def answer(command, path, value, output, data, arguments):
    try:
        if command != "open":
            return change(command, path, value, arguments)
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
        told = answer(command, asked["path"], value, asked["output"], asked["data"], arguments)
        print(told, flush=True)
        asked, arguments = {"data": None, "output": None}, {}
