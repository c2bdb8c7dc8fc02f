"""10,000 random calls with random arguments: only the documented exceptions, and the right bytes."""

import io
import os
import random

import cryptmark
from support import PASSPHRASE, PLAIN, VolumeCase

CALLS = int(os.environ.get("CRYPTMARK_RANDOM_CALLS", "10000"))

#: What the documentation allows. An abort ends the test, and a panic is none of these.
DOCUMENTED = (cryptmark.Error, TypeError, ValueError, OverflowError, BufferError, OSError)


class Hostile(VolumeCase):
    def number(self, size):
        return self.random.choice(
            (
                lambda: self.random.randrange(size),
                lambda: self.random.randrange(700),
                lambda: self.random.randrange(size) // 512 * 512,
                lambda: size + self.random.randrange(-3, 3),
                lambda: self.random.choice((-1, -size, 0, 1 << 31, (1 << 63) - 1, 1 << 63)),
                lambda: self.random.choice(((1 << 64) - 1, 1 << 64, -(1 << 64), 1 << 300)),
                lambda: self.anything(),
            )
        )()

    def anything(self):
        return self.random.choice(
            (None, True, 1.5, float("nan"), "text", "\ud800", b"", [], {}, object(), int, self, "7")
        )

    def buffer(self):
        length = self.random.choice((0, 1, 16, 511, 512, 4096, 300_000))
        data = bytearray(self.random.getrandbits(8) for _ in range(min(length, 600)))
        data += bytes(length - len(data))
        return self.random.choice(
            (
                lambda: data,
                lambda: bytes(data),
                lambda: memoryview(data),
                lambda: memoryview(data)[::2],
                lambda: memoryview(data)[1:],
                lambda: memoryview(bytes(data)),
                lambda: memoryview(data[: length // 16 * 16]).cast("d"),
                lambda: self.anything(),
            )
        )()

    def bytes_of(self, value):
        with memoryview(value) as view:
            return view.tobytes()

    def call(self, files):
        """One random call. The model changes as the volume should."""
        file = self.random.choice(files)
        volume, model, position = file["volume"], file["model"], file["position"]
        size = len(model)
        kind = self.random.randrange(14)
        if kind == 0:
            n, offset = self.number(size), self.number(size)
            self.assertEqual(volume.pread(n, offset), model[offset : offset + n])
        elif kind in (1, 2):
            data, offset = self.buffer(), self.number(size)
            written = volume.pwrite(data, offset)
            data = self.bytes_of(data)
            self.assertEqual(written, len(data))
            model[offset : offset + len(data)] = data
            self.assertEqual(len(model), size)
        elif kind == 3:
            n = self.number(size)
            got = volume.read(n)
            n = size if n is None or n < 0 else n
            self.assertEqual(got, model[position : position + n])
            file["position"] += len(got)
        elif kind == 4:
            target = self.buffer()
            n = volume.readinto(target)
            self.assertEqual(self.bytes_of(target)[:n], model[position : position + n])
            file["position"] += n
        elif kind in (5, 6):
            data = self.buffer()
            n = volume.write(data)
            model[position : position + n] = self.bytes_of(data)[:n]
            self.assertEqual(len(model), size)
            file["position"] += n
        elif kind in (7, 8):
            offset, whence = self.number(size), self.random.choice((0, 0, 1, 2, 3, -1, 256, None))
            file["position"] = volume.seek(offset, whence)
            base = {0: 0, 1: position, 2: size}[whence]
            self.assertEqual(file["position"], base + offset)
        elif kind == 9:
            self.assertEqual(volume.tell(), position)
            volume.flush()
            self.assertEqual(volume.size, size)
        elif kind == 10:
            repr(volume), volume.info, volume.readable(), volume.isatty()
            volume.truncate(self.number(size))
        elif kind == 11:
            name = self.random.choice(("size", "info", "closed", "_handle.size", "mode"))
            if "." in name:
                setattr(volume._handle, "size", self.anything())
            elif name in ("size", "info", "closed"):
                setattr(volume, name, self.anything())
        elif kind == 12:
            native = volume._handle
            use = self.random.choice(("pread", "pwrite", "read", "seek"))
            arguments = [self.anything() for _ in range(self.random.randrange(4))]
            getattr(native, use)(*arguments)
            file["position"] = volume.tell()
        elif self.random.randrange(8) == 0:
            volume.close()
            self.reopen(file)
        else:
            names = ["key_size", "offset", "size", "skip", "sector_size", "cipher", "hash"]
            names += ["header", "format", "mode", "passphrase", "key_slot", "keyfiles", "key_file"]
            chosen = self.random.sample(names, self.random.randrange(1, 3))
            arguments = {name: self.random.choice((self.anything, self.buffer))() for name in chosen}
            path = self.random.choice((volume.name, self.folder, self.anything(), "\0", ""))
            cryptmark.open(path, **arguments).close()

    def reopen(self, file):
        file["volume"] = cryptmark.open(file["path"], mode="r+b", **file["arguments"])
        file["position"] = 0

    def test_random_calls(self):
        seed = int(os.environ.get("CRYPTMARK_SEED", random.randrange(1 << 32)))
        self.random = random.Random(seed)
        files = [
            {"path": self.plain(300_032), "arguments": PLAIN},
            {"path": self.luks(1, 3 << 20), "arguments": {"passphrase": PASSPHRASE}},
            {"path": self.luks(2, 3 << 20, "2.img"), "arguments": {"passphrase": PASSPHRASE}},
        ]
        for file in files:
            self.reopen(file)
            self.addCleanup(lambda file=file: file["volume"].close())
            file["model"] = bytearray(file["volume"].readall())
            file["position"] = len(file["model"])
        refused = 0
        with self.subTest(seed=seed):
            for _ in range(CALLS):
                try:
                    self.call(files)
                except (io.UnsupportedOperation, AttributeError, *DOCUMENTED):
                    refused += 1
                except KeyError:
                    self.fail("an unknown whence was taken")
            # Both happen.
            self.assertTrue(CALLS // 10 < refused < CALLS * 9 // 10, refused)
            for file in files:
                self.assertEqual(file["volume"].pread(len(file["model"]), 0), file["model"])
