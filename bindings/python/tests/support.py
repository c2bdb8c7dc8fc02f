"""Volumes to test with."""

import io
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PASSPHRASE = "correct horse"

#: The size of a plain volume in a file object, and what opens it.
SIZE = 1 << 20
PLAIN = {"passphrase": PASSPHRASE, "format": "plain", "allow": ["unknown"]}


def skip(reason):
    """Skips a test as `cargo xtask test` counts it."""
    print(f"skipped: {reason}", flush=True)
    raise unittest.SkipTest(reason)


def interrupted(script, *arguments, after):
    """Runs a script, and sends it Ctrl-C some time after its first line of output.

    Returns its status, and the seconds that it took to end.
    """
    # A job in the background of a shell ignores Ctrl-C, and so do its children.
    listens = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", listens + script, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            time.sleep(after)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            return child.wait(60), time.monotonic() - sent
        finally:
            child.kill()


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

    def plain(self, size=1 << 20):
        """The path of a file, and the parameters of a plain volume in it."""
        path = self.folder / "plain.img"
        with path.open("wb") as file:
            file.truncate(size)
        return path, {"passphrase": PASSPHRASE, "format": "plain", "allow": ["unknown"]}


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
