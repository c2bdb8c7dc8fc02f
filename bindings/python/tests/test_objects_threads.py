"""File objects that use volumes, that Ctrl-C ends, and that now and then do anything."""

import gc
import io
import os
import random
import weakref

import cryptmark
from support import PASSPHRASE, PLAIN, SIZE, Strange, VolumeCase, interrupted


class Reentrant(VolumeCase):
    def test_an_object_cannot_use_its_own_volume(self):
        for name, *arguments in (
            ("pread", 1, 0),
            ("read", 1),
            ("pwrite", b"1", 0),
            ("write", b"1"),
            ("seek", 0),
            ("flush",),
        ):
            file = Strange()
            volume = cryptmark.open(file, mode="r+b", **PLAIN)
            use = getattr(volume, name)
            file.read = lambda size, use=use, arguments=arguments: use(*arguments)
            for outer in (volume.read, lambda volume=volume: volume.pwrite(b"1", 0)):
                error = self.refused(cryptmark.Failed, outer)
                self.assertIn("used the volume that reads it", str(error.__cause__))
            del file.read
            self.assertEqual(len(volume.pread(9, 0)), 9)
            volume.close()

    def test_an_object_may_close_its_volume(self):
        file = Strange()
        volume = cryptmark.open(file, mode="r+b", **PLAIN)
        # A flush would use it.
        file.read = lambda size: volume._handle.close() or io.BytesIO.read(file, size)
        self.assertEqual(len(volume.pread(9, 0)), 9)
        self.assertRaises(ValueError, volume.pread, 9, 0)
        self.assertRaises(ValueError, volume.close)
        self.assertTrue(volume.closed)

    def test_objects_that_open_others_come_to_an_end(self):
        def read(size):
            return cryptmark.open(changed("read", read), PASSPHRASE).read(size)

        def tell():
            return cryptmark.open(changed("tell", tell), PASSPHRASE).size

        def changed(name, method):
            file = Strange()
            setattr(file, name, method)
            return file

        for name, method in (("read", read), ("tell", tell)):
            self.refused(RecursionError, cryptmark.open, changed(name, method), PASSPHRASE)
        # What other objects do is not disturbed.
        cryptmark.open(Strange(), **PLAIN).read()

    def test_an_object_cannot_open_itself(self):
        file = Strange()
        file.read = lambda size: cryptmark.open(file, PASSPHRASE).read(size)
        error = self.refused(cryptmark.Failed, cryptmark.open, file, PASSPHRASE)
        self.assertIsInstance(error.__cause__, cryptmark.Protected)

    def test_volumes_that_read_each_other_come_to_an_end(self):
        one, two = Strange(), Strange()
        with cryptmark.open(one, **PLAIN) as first, cryptmark.open(two, **PLAIN) as second:
            one.read, two.read = (lambda n: second.pread(n, 0)), (lambda n: first.pread(n, 0))
            self.assertRaises(cryptmark.Failed, first.read)
            self.assertRaises(cryptmark.Failed, second.read)

    def test_garbage_is_collected(self):
        class Cycle(io.BytesIO):
            pass

        file = Cycle(bytes(SIZE))
        file.volume = cryptmark.open(file, **PLAIN)
        gone = weakref.ref(file)
        del file
        gc.collect()
        self.assertIsNone(gone())
        file = Cycle(bytes(SIZE))
        gone = weakref.ref(file)
        volume = cryptmark.open(file, **PLAIN)
        del file
        self.assertIsNotNone(gone())
        volume.close()
        gc.collect()
        self.assertIsNone(gone())


class Interrupted(VolumeCase):
    INTERRUPTED = """
class Slow(io.BytesIO):
    slow = False
    def read(self, size=-1):
        while self.slow and threading.current_thread() is self.hung:
            time.sleep(0.01)
        return super().read(size)
file = Slow(bytes(1 << 20))
volume = cryptmark.open(file, "pw", format="plain", mode="r+b")
other = threading.Thread(target=lambda: volume.read(), daemon=True)
file.slow, file.hung = True, threading.current_thread()
if sys.argv[1] == "wait":
    file.hung = other
    other.start()
    time.sleep(0.2)
print("reading", flush=True)
if sys.argv[1] == "open":
    another = Slow(bytes(1 << 20))
    another.slow, another.hung = True, threading.current_thread()
    cryptmark.open(another, "pw")
elif sys.argv[1] == "write":
    volume.pwrite(b"1", 3)
else:
    volume.read()
"""
    ENDED = """
file.slow = False
assert len(volume.pread(9, 9)) == 9
assert file.getvalue() == bytes(1 << 20)
"""

    def test_ctrl_c_ends_a_read_and_a_wait(self):
        for what in ("read", "wait", "open", "write"):
            status, _ = interrupted(self.INTERRUPTED, what, after=0.3, ended=self.ENDED)
            self.assertEqual(status, 7, what)

    def test_what_is_no_error_passes_through(self):
        class Quit(BaseException):
            pass

        content = self.luks(2).read_bytes()
        # Every read of the header, the engine's second attempts included.
        for number in range(6):
            file = Strange(content)

            def read(size, file=file, number=number):
                if len(file.calls) == number:
                    raise Quit
                file.calls.append("read")
                return io.BytesIO.read(file, size)

            file.read = read
            self.assertRaises(Quit, cryptmark.open, file, PASSPHRASE)
            del file.read
            cryptmark.open(file, PASSPHRASE).close()


class Random(VolumeCase):
    """Random calls, of objects that now and then do anything."""

    def test_random_calls(self):
        seed = int(os.environ.get("CRYPTMARK_SEED", random.randrange(1 << 32)))
        calls = int(os.environ.get("CRYPTMARK_RANDOM_CALLS", "10000"))
        chance = random.Random(seed)
        strange = (None, "text", b"", -1, 1 << 70, bytes(SIZE + 1), object(), [], 1.5)
        errors = (ValueError, OSError(5, "of the test"), MemoryError, KeyError, EOFError)

        class Mad(io.BytesIO):
            mad = False

            def anything(self, usual, *arguments):
                if self.mad and chance.randrange(12) == 0:
                    if chance.randrange(2):
                        raise chance.choice(errors)
                    return chance.choice(strange)
                return usual(*arguments)

            def read(self, size=-1):
                if self.mad and size > 1 and chance.randrange(3) == 0:
                    size = chance.randrange(1, size)
                return self.anything(super().read, size)

            def seek(self, *arguments):
                # An object that neither moves nor says where it is cannot be found out.
                at = super().seek(*arguments)
                return self.anything(lambda: at)

            def write(self, data):
                if self.mad and chance.randrange(3) == 0:
                    data = data[: chance.randrange(1, len(data) + 1)]
                return self.anything(super().write, data)

            def flush(self):
                return self.anything(lambda: None)

        size = 300_032
        file, another = Mad(bytes(size)), Mad(bytes(size))
        another.mad = True
        volume = cryptmark.open(file, mode="r+b", **PLAIN)
        model = bytearray(volume.read())
        refused = 0
        with self.subTest(seed=seed):
            for _ in range(calls):
                at, length = chance.randrange(size), chance.randrange(chance.choice((9, 9000)))
                length = min(length, size - at)
                file.mad = True
                kind = chance.randrange(5)
                try:
                    if kind == 0:
                        self.assertEqual(volume.pread(length, at), model[at : at + length])
                    elif kind == 1:
                        volume.seek(at)
                        self.assertEqual(volume.read(length), model[at : at + length])
                    elif kind == 2:
                        before = file.getvalue()
                        data = chance.getrandbits(8 * length).to_bytes(length, "little")
                        volume.pwrite(data, at)
                        model[at : at + length] = data
                    elif kind == 3:
                        volume.flush()
                    else:
                        with cryptmark.open(another, **PLAIN) as other:
                            other.read(9)
                except cryptmark.Failed as error:
                    self.assertTrue(error.__cause__ or "now shorter" in str(error))
                    refused += 1
                    if kind == 2:
                        # What was written is undefined there, and nowhere else.
                        file.mad = False
                        first, end = at // 512 * 512, -(-(at + length) // 512) * 512
                        self.assertEqual(file.getvalue()[:first], before[:first])
                        self.assertEqual(file.getvalue()[end:], before[end:])
                        model[first:end] = volume.pread(end - first, first)
            file.mad = False
            self.assertTrue(calls // 10 < refused < calls * 9 // 10, refused)
            self.assertEqual(volume.pread(size, 0), model)
        volume.close()
