"""Threads, processes and signals of volumes in file objects, and 10,000 random calls."""

import gc
import io
import os
import random
import threading
import time
import unittest
import weakref

import cryptmark
from support import PASSPHRASE, PLAIN, SIZE, Strange, VolumeCase, interrupted


class Reentrant(VolumeCase):
    def test_an_object_cannot_use_its_own_volume(self):
        uses = (
            lambda volume: volume.pread(1, 0),
            lambda volume: volume.read(1),
            lambda volume: volume.pwrite(b"1", 0),
            lambda volume: volume.write(b"1"),
            lambda volume: volume.seek(0),
            lambda volume: volume.flush(),
        )
        for use in uses:
            file = Strange()
            volume = cryptmark.open(file, mode="r+b", **PLAIN)
            file.read = lambda size, use=use, volume=volume: use(volume)
            for outer in (volume.read, lambda: volume.pwrite(b"1", 0)):
                with self.assertRaises(cryptmark.Failed) as raised:
                    outer()
                self.assertIn("used the volume that reads it", str(raised.exception.__cause__))
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
        def reads():
            file = Strange()
            file.read = lambda size: cryptmark.open(reads(), PASSPHRASE).read(size)
            return file

        def tells():
            file = Strange()
            file.tell = lambda: cryptmark.open(tells(), PASSPHRASE).size
            return file

        self.assertRaises(RecursionError, cryptmark.open, reads(), PASSPHRASE)
        self.assertRaises(RecursionError, cryptmark.open, tells(), PASSPHRASE)
        # What other objects do is not disturbed.
        cryptmark.open(Strange(), **PLAIN).read()

    def test_an_object_cannot_open_itself(self):
        file = Strange()
        file.read = lambda size: cryptmark.open(file, PASSPHRASE).read(size)
        with self.assertRaises(cryptmark.Failed) as raised:
            cryptmark.open(file, PASSPHRASE)
        self.assertIsInstance(raised.exception.__cause__, cryptmark.Protected)

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


class Concurrent(VolumeCase):
    def test_threads_take_turns(self):
        inside = []

        class Watched(io.BytesIO):
            def read(self, size=-1):
                inside.append(1)
                time.sleep(0)
                self.test.assertEqual(len(inside), 1)
                inside.pop()
                return super().read(size)

        file = Watched(bytes(SIZE))
        file.test = self
        errors = []
        with cryptmark.open(file, mode="r+b", **PLAIN) as volume:

            def work(number):
                try:
                    for turn in range(50):
                        data = os.urandom(turn * 97 + 1)
                        at = number * (SIZE // 8) + turn * 700 + number
                        volume.pwrite(data, at)
                        self.assertEqual(volume.pread(len(data), at), data)
                        volume.seek(at)
                        volume.read(9)
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(errors, [])

    def test_a_forked_process_cannot_use_it(self):
        file = Strange()
        volume = cryptmark.open(file, mode="r+b", **PLAIN)
        stop = threading.Event()

        def read():
            while not stop.is_set():
                volume.pread(SIZE, 0)

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                status = 3
                try:
                    for use in (lambda: volume.pread(1, 0), lambda: volume.write(b"1")):
                        try:
                            use()
                            status = 1
                        except cryptmark.Failed as error:
                            status = 0 if "forked" in str(error) else 2
                    del file.calls[:]
                    volume.close()
                    status = status or len(file.calls)
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        stop.set()
        reader.join()
        self.assertEqual(len(volume.pread(9, 9)), 9)
        volume.close()

    INTERRUPTED = """
import cryptmark, io, sys, threading, time
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
try:
    if sys.argv[1] == "open":
        another = Slow(bytes(1 << 20))
        another.slow, another.hung = True, threading.current_thread()
        cryptmark.open(another, "pw")
    elif sys.argv[1] == "write":
        volume.pwrite(b"1", 3)
    else:
        volume.read()
except KeyboardInterrupt:
    file.slow = False
    assert len(volume.pread(9, 9)) == 9
    assert file.getvalue() == bytes(1 << 20)
    sys.exit(7)
"""

    def test_ctrl_c_ends_a_read_and_a_wait(self):
        for what in ("read", "wait", "open", "write"):
            self.assertEqual(interrupted(self.INTERRUPTED, what, after=0.3)[0], 7, what)

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


if __name__ == "__main__":
    unittest.main()
