"""Volumes to test with."""

import contextlib
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from pathlib import Path

import cryptmark

PASSPHRASE = "correct horse"

#: The size of a plain volume in a file object, and what opens it.
SIZE = 1 << 20
PLAIN = {"passphrase": PASSPHRASE, "format": "plain", "allow": ["unknown"]}

#: What opens a volume of `VolumeCase.vera`.
VERA = {"format": "veracrypt", "veracrypt_pim": 1}

#: A derivation of keys that takes no time.
CHEAP = {"pbkdf": "pbkdf2", "iter_time": 1}

THREADS = 8


def skip(reason):
    """Skips a test as `cargo xtask test` counts it."""
    print(f"skipped: {reason}", flush=True)
    raise unittest.SkipTest(reason)


def needs(*modules):
    """Skips a test unless there are these modules."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            skip(f"Python: {module} is not installed")


def interrupted(script, *arguments, after, ended=""):
    """Runs a script, and sends it Ctrl-C some time after its first line of output.

    It does `ended` then, and its status is 7 if nothing else happens. Returns its status, and the
    seconds that it took to end.
    """
    # A job in the background of a shell ignores Ctrl-C, and so do its children.
    lines = ["import cryptmark, io, signal, sys, threading, time"]
    lines += ["signal.signal(signal.SIGINT, signal.default_int_handler)", "try:"]
    lines += [textwrap.indent(script, "    "), "except KeyboardInterrupt:"]
    lines += [textwrap.indent(ended, "    "), "    sys.exit(7)"]
    command = [sys.executable, "-c", "\n".join(lines), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            time.sleep(after)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            return child.wait(60), time.monotonic() - sent
        finally:
            child.kill()


def in_threads(work, threads=THREADS):
    """Runs `work` with a number in each thread, and raises what one of them raised."""
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def repeated(work):
    """Does `work` again and again in another thread meanwhile."""
    stop = threading.Event()

    def repeat():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def turns_during(work):
    """How often this thread has its turn while another one does `work`."""
    done, turns = threading.Event(), 0

    def run(_):
        work()
        done.set()

    thread = threading.Thread(target=in_threads, args=(run, 1))
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    return turns if done.is_set() else -1


def forked(work):
    """The exit status of a forked process: what `work` returns there."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            signal.alarm(60)
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class VolumeCase(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="cryptmark-python-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def luks(self, version=1, size=4 << 20, name="disk.img"):
        """The path of a LUKS volume, whose data are undefined."""
        if shutil.which("cryptsetup") is None:
            skip("Python: cryptsetup is not installed")
        path = self.folder / name
        # LUKS2 keeps 16 MiB for its header.
        with path.open("wb") as file:
            file.truncate(size + (14 << 20) * (version == 2))
        command = ["cryptsetup", "luksFormat", "--batch-mode", "--type", f"luks{version}"]
        command += ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", "-"]
        subprocess.run([*command, str(path)], input=PASSPHRASE.encode(), check=True)
        return path

    def plain(self, size=SIZE, content=None):
        """The path of a file, in which PLAIN opens a volume."""
        path = self.folder / "plain.img"
        path.write_bytes(bytes(size) if content is None else content)
        return path

    def vera(self, size):
        """The path of a VeraCrypt volume that PASSPHRASE opens with VERA."""
        path = self.folder / "vera.img"
        made = {"size": size, "quick": True, "allow": ["weak"], **VERA}
        cryptmark.create(path, passphrase=PASSPHRASE, **made)
        return path

    def refused(self, kind, use, *arguments, **named):
        """The exception of that kind which a call raises."""
        with self.assertRaises(kind, msg=(arguments, named)) as raised:
            use(*arguments, **named)
        return raised.exception

    def asks(self, question, use, *arguments, **named):
        """A call is refused because of a loss of that name."""
        error = self.refused(cryptmark.Protected, use, *arguments, **named)
        self.assertEqual(error.question, question)


class Strange(io.BytesIO):
    """A file object, any of whose methods a test may replace."""

    def __init__(self, content=bytes(SIZE)):
        super().__init__(content)
        self.calls = []

    def read(self, size=-1):
        self.calls.append("read")
        return super().read(size)

    def write(self, data):
        self.calls.append("write")
        return super().write(data)

    def flush(self):
        self.calls.append("flush")
