"""Reads of LUKS volumes: cryptmark beside dissect.fve and libluksde, in interleaved rounds.

    python compare.py [FOLDER]

FOLDER should be in memory. It needs the packages dissect.fve and libluksde-python.
Each round reads the volume with each library, in an order that turns. The ratio of a round divides
two rates of the same round. Leave the machine alone meanwhile.
"""

import hashlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyluksde
from dissect.fve.luks import LUKS

import cryptmark

SIZE, REQUEST, ROUNDS = 256 << 20, 1 << 20, 11
#: Seconds after which a slow library need not read the rest of the volume.
LONGEST = 1.0
PASSPHRASE = "correct horse"


def create(path, version):
    """A LUKS volume of SIZE bytes with AES-256 in XTS."""
    header = (16 if version == 2 else 2) << 20
    how = {"cipher": "aes-xts-plain64", "key_size": 512, "pbkdf": "pbkdf2", "iter_time": 1}
    cryptmark.create(path, f"luks{version}", PASSPHRASE, size=SIZE + header, **how)
    # A hole of the file would cost less to read.
    with cryptmark.open(path, PASSPHRASE, mode="r+b") as volume:
        while volume.tell() < SIZE:
            volume.write(os.urandom(REQUEST))


def by_cryptmark(path):
    return cryptmark.open(path, PASSPHRASE), None


def into_a_buffer(path):
    volume = cryptmark.open(path, PASSPHRASE)
    buffer = bytearray(REQUEST)
    return volume, lambda _: memoryview(buffer)[: volume.readinto(buffer)]


def by_dissect(path):
    luks = LUKS(path.open("rb"))
    luks.unlock_with_passphrase(PASSPHRASE)
    return luks.open(), None


def by_libluksde(path):
    volume = pyluksde.volume()
    volume.set_password(PASSPHRASE)
    volume.open(str(path))
    return volume, None


def rate(opened):
    """MB/s of sequential reads, and the digest of the first mebibytes."""
    volume, read = opened
    read = read or volume.read
    digest, done = hashlib.sha256(), 0
    start = time.perf_counter()
    seconds = 0.0
    while done < SIZE and seconds < LONGEST:
        piece = read(REQUEST)
        done += len(piece)
        seconds = time.perf_counter() - start
    volume.seek(0)
    for _ in range(4):
        digest.update(read(REQUEST))
    return done / seconds / 1e6, digest.hexdigest()


LIBRARIES = {
    "cryptmark": by_cryptmark,
    "cryptmark, readinto": into_a_buffer,
    "dissect.fve": by_dissect,
    "libluksde": by_libluksde,
}


def measure(path):
    """The rates of each library, round by round. A library that cannot open it is left out."""
    usable = {}
    for name, opener in LIBRARIES.items():
        try:
            opener(path)
            usable[name] = opener
        except Exception as error:
            print(f"  {name}: {error!r}")
    rates = {name: [] for name in usable}
    digests = set()
    for turn in range(ROUNDS):
        names = list(usable)
        names = names[turn % len(names) :] + names[: turn % len(names)]
        for name in names:
            value, digest = rate(usable[name](path))
            rates[name].append(value)
            digests.add(digest)
    if len(digests) != 1:
        sys.exit("the libraries read different bytes")
    return rates


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    with tempfile.TemporaryDirectory(dir=folder) as folder:
        path = Path(folder, "volume")
        for version in (1, 2):
            create(path, version)
            print(f"LUKS{version}, {SIZE >> 20} MiB, reads of 1 MiB, {ROUNDS} rounds")
            rates = measure(path)
            own = rates["cryptmark"]
            for name, values in rates.items():
                ratios = [one / other for one, other in zip(own, values)]
                print(
                    f"  {name:20} {statistics.median(values):7.0f} MB/s; cryptmark is "
                    f"{statistics.median(ratios):.2f} times as fast "
                    f"({min(ratios):.2f}–{max(ratios):.2f})"
                )


if __name__ == "__main__":
    main()
