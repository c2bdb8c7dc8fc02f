"""Threads, forked processes and signals."""

import gc
import multiprocessing
import os
import subprocess
import sys
import time

import cryptmark
from support import (
    PASSPHRASE,
    PLAIN,
    SIZE,
    THREADS,
    Strange,
    VolumeCase,
    forked,
    in_threads,
    interrupted,
    repeated,
    turns_during,
)


class Watched(Strange):
    """A file object that one thread at a time must use."""

    def __init__(self):
        super().__init__()
        self.inside = []

    def read(self, size=-1):
        self.inside.append(1)
        time.sleep(0)
        assert len(self.inside) == 1
        self.inside.pop()
        return super().read(size)


class Opened(VolumeCase):
    file = None

    def setUp(self):
        super().setUp()
        self.arrange()
        self.volume = self.open()
        self.addCleanup(self.volume.close)

    def arrange(self):
        self.path = self.luks()

    def open(self):
        return cryptmark.open(self.path, PASSPHRASE, mode="r+b")


class OfObject(Opened):
    """The same of a volume in a file object."""

    def arrange(self):
        self.file = Watched()

    def open(self):
        return cryptmark.open(self.file, mode="r+b", **PLAIN)


class Threads(Opened):
    def test_each_thread_reads_what_it_has_written(self):
        part = self.volume.size // THREADS

        def work(number):
            for turn in range(60):
                data = os.urandom((turn * 997) % 9000 + 1)
                # Neighbours share sectors where parts meet in the middle of one.
                at = number * part + turn * 700 + number
                self.volume.pwrite(data, at)
                self.assertEqual(self.volume.pread(len(data), at), data)

        in_threads(work)

    def test_threads_that_share_the_position_read_every_byte_once(self):
        content = os.urandom(self.volume.size)
        self.volume.pwrite(content, 0)
        pieces = []

        def work(_):
            while True:
                piece = self.volume.read(5000)
                if not piece:
                    return
                pieces.append(piece)

        in_threads(work)
        self.assertEqual(len(b"".join(pieces)), len(content))
        expected = sorted(content[at : at + 5000] for at in range(0, len(content), 5000))
        self.assertEqual(sorted(pieces), expected)

    def test_others_go_on_while_a_volume_is_closed(self):
        def work(number):
            time.sleep(number / 1000)
            try:
                while True:
                    if number == THREADS - 1:
                        self.volume.close()
                    self.volume.pwrite(self.volume.pread(70_001, 1), 1)
                    self.volume.readinto(bytearray(300_000))
                    self.volume.seek(0)
            except ValueError:
                pass

        in_threads(work)
        self.assertTrue(self.volume.closed)
        self.open().close()

    def test_the_target_of_a_read_cannot_be_resized_by_another_thread(self):
        target = bytearray(self.volume.size)

        def resize():
            try:
                target.append(0)
                target.pop()
            except BufferError:
                pass

        with repeated(resize):
            for _ in range(20):
                self.volume.seek(0)
                self.assertEqual(self.volume.readinto(target), self.volume.size)


class ThreadsOfObject(OfObject, Threads):
    pass


class Forks(Opened):
    def in_child(self):
        """What a forked process sees. Returns 0 if that is right."""
        for name, *arguments in (
            ("read", 1),
            ("readinto", bytearray(1)),
            ("write", b"1"),
            ("pread", 1, 0),
            ("pwrite", b"1", 0),
            ("seek", 0),
            ("flush",),
        ):
            error = self.refused(cryptmark.Failed, getattr(self.volume, name), *arguments)
            self.assertIn("forked", str(error))
        calls = [] if self.file is None else self.file.calls
        del calls[:]
        self.volume.close()
        self.volume = None
        gc.collect()
        # It writes nothing.
        return len(calls)

    def still_there(self):
        self.volume.pwrite(b"still there", 3)
        self.assertEqual(self.volume.pread(11, 3), b"still there")
        if self.file is not None:
            return
        script = (
            "import cryptmark, sys\n"
            "try: cryptmark.open(sys.argv[1], 'correct horse', mode='r+b')\n"
            "except cryptmark.Protected: sys.exit(7)"
        )
        ran = subprocess.run([sys.executable, "-c", script, str(self.path)], check=False)
        self.assertEqual(ran.returncode, 7)

    def test_a_forked_process_cannot_use_it_and_the_parent_goes_on(self):
        def read():
            self.volume.seek(0)
            self.volume.read()

        # A thread has the position during the fork.
        with repeated(read):
            for _ in range(5):
                self.assertEqual(forked(self.in_child), 0)
        self.still_there()

    def test_a_process_of_multiprocessing_ends_as_usual(self):
        context = multiprocessing.get_context("fork")
        # The second one has it open until the interpreter ends.
        for work in (self.in_child, lambda: 0):
            child = context.Process(target=lambda work=work: sys.exit(work()))
            child.start()
            child.join(60)
            self.assertEqual(child.exitcode, 0)
        self.still_there()

    def test_a_forked_process_opens_volumes_of_its_own(self):
        self.volume.close()

        def opens():
            with self.open() as own:
                return int(len(own.read(10)) != 10)

        self.assertEqual(forked(opens), 0)


class ForksOfObject(OfObject, Forks):
    pass


class Searches(VolumeCase):
    def test_a_forked_process_derives_keys_in_threads_of_its_own(self):
        path = self.luks(2, name="argon2.img")
        options = ["--pbkdf", "argon2id", "--pbkdf-memory", "8192", "--pbkdf-force-iterations", "4"]
        command = ["cryptsetup", "luksAddKey", "--batch-mode", *options, "--pbkdf-parallel", "4"]
        key = self.folder / "key"
        key.write_bytes(b"by Argon2")
        new = ["--key-file", "-", str(path), str(key)]
        subprocess.run([*command, *new], input=PASSPHRASE.encode(), check=True)
        for run in (lambda work: work(), forked):
            self.assertFalse(run(lambda: cryptmark.open(path, b"by Argon2").close() or 0))

    SEARCH = """
print("searching", flush=True)
cryptmark.open(sys.argv[1], "wrong", format="veracrypt", veracrypt_pim=3000)
"""

    def test_ctrl_c_ends_a_search_for_a_key(self):
        path = self.plain(content=os.urandom(SIZE))
        status, seconds = interrupted(self.SEARCH, path, after=0.5)
        self.assertEqual(status, 7)
        self.assertLess(seconds, 20)

    def test_other_threads_run_during_a_search(self):
        path = self.plain(content=os.urandom(SIZE))
        search = {"passphrase": "wrong", "format": "tcrypt"}
        wrong = cryptmark.WrongSecret
        turns = turns_during(lambda: self.refused(wrong, cryptmark.open, path, **search))
        self.assertGreater(turns, 3)
