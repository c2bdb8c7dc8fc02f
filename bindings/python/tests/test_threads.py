"""Threads, forked processes and signals."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import cryptmark
from support import PASSPHRASE, VolumeCase, interrupted

THREADS = 8


def in_threads(work):
    """Runs `work` with a number in each thread, and raises what one of them raised."""
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Threads(VolumeCase):
    def setUp(self):
        super().setUp()
        self.path = self.luks()
        self.volume = cryptmark.open(self.path, PASSPHRASE, mode="r+b")
        self.addCleanup(self.volume.close)

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
        cryptmark.open(self.path, PASSPHRASE, mode="r+b").close()

    def test_the_target_of_a_read_cannot_be_resized_by_another_thread(self):
        target = bytearray(self.volume.size)
        stop = threading.Event()

        def resize():
            while not stop.is_set():
                try:
                    target.append(0)
                    target.pop()
                except BufferError:
                    pass

        other = threading.Thread(target=resize)
        other.start()
        for _ in range(20):
            self.volume.seek(0)
            self.assertEqual(self.volume.readinto(target), self.volume.size)
        stop.set()
        other.join()


class Forks(VolumeCase):
    def setUp(self):
        super().setUp()
        self.path = self.luks()
        self.volume = cryptmark.open(self.path, PASSPHRASE, mode="r+b")
        self.addCleanup(self.volume.close)

    def uses(self):
        volume = self.volume
        return (
            lambda: volume.read(1),
            lambda: volume.readinto(bytearray(1)),
            lambda: volume.write(b"1"),
            lambda: volume.pread(1, 0),
            lambda: volume.pwrite(b"1", 0),
            lambda: volume.seek(0),
            lambda: volume.flush(),
        )

    def in_child(self):
        """What a forked process sees. Returns 0 if that is right."""
        for use in self.uses():
            try:
                use()
                return 1
            except cryptmark.Failed as error:
                if "forked" not in str(error):
                    return 2
        self.volume.close()
        self.volume = None
        gc.collect()
        return 0

    def still_there(self):
        self.volume.pwrite(b"still there", 3)
        self.assertEqual(self.volume.pread(11, 3), b"still there")
        script = (
            "import cryptmark, sys\n"
            "try: cryptmark.open(sys.argv[1], 'correct horse', mode='r+b')\n"
            "except cryptmark.Protected: sys.exit(7)"
        )
        ran = subprocess.run([sys.executable, "-c", script, str(self.path)], check=False)
        self.assertEqual(ran.returncode, 7)

    def test_a_forked_process_cannot_use_it_and_the_parent_goes_on(self):
        # A thread has the position during the fork.
        stop = threading.Event()

        def read():
            while not stop.is_set():
                self.volume.seek(0)
                self.volume.read()

        reader = threading.Thread(target=read)
        reader.start()
        children = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                status = 3
                try:
                    status = self.in_child()
                finally:
                    os._exit(status)
            children.append(child)
        for child in children:
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        stop.set()
        reader.join()
        self.still_there()

    def test_a_process_of_multiprocessing_ends_as_usual(self):
        context = multiprocessing.get_context("fork")
        child = context.Process(target=lambda: sys.exit(self.in_child()))
        child.start()
        child.join(60)
        self.assertEqual(child.exitcode, 0)
        # One that has it open until the interpreter ends.
        child = context.Process(target=lambda: sys.exit(0))
        child.start()
        child.join(60)
        self.assertEqual(child.exitcode, 0)
        self.still_there()

    def test_a_forked_process_opens_volumes_of_its_own(self):
        self.volume.close()
        child = os.fork()
        if child == 0:
            status = 3
            try:
                with cryptmark.open(self.path, PASSPHRASE, mode="r+b") as own:
                    status = int(len(own.read(10)) != 10)
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_a_forked_process_derives_keys_in_threads_of_its_own(self):
        path = self.luks(2, name="argon2.img")
        options = ["--pbkdf", "argon2id", "--pbkdf-memory", "8192", "--pbkdf-force-iterations", "4"]
        command = ["cryptsetup", "luksAddKey", "--batch-mode", *options, "--pbkdf-parallel", "4"]
        key = self.folder / "key"
        key.write_bytes(b"by Argon2")
        new = ["--key-file", "-", str(path), str(key)]
        subprocess.run([*command, *new], input=PASSPHRASE.encode(), check=True)
        cryptmark.open(path, b"by Argon2").close()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            status = 3
            try:
                cryptmark.open(path, b"by Argon2").close()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class Signals(VolumeCase):
    SEARCH = (
        "import cryptmark, sys\n"
        "print('searching', flush=True)\n"
        "try:\n"
        "    cryptmark.open(sys.argv[1], 'wrong', format='veracrypt', veracrypt_pim=3000)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )

    def test_ctrl_c_ends_a_search_for_a_key(self):
        path, _ = self.plain()
        path.write_bytes(os.urandom(1 << 20))
        status, seconds = interrupted(self.SEARCH, path, after=0.5)
        self.assertEqual(status, 7)
        self.assertLess(seconds, 20)

    def test_other_threads_run_during_a_search(self):
        path, _ = self.plain()
        path.write_bytes(os.urandom(1 << 20))
        done = threading.Event()

        def search():
            with self.assertRaises(cryptmark.WrongSecret):
                cryptmark.open(path, "wrong", format="tcrypt")
            done.set()

        searching = threading.Thread(target=search)
        searching.start()
        turns = 0
        while not done.is_set():
            time.sleep(0.001)
            turns += 1
        searching.join()
        self.assertGreater(turns, 3)


if __name__ == "__main__":
    unittest.main()
