"""The examples, and the pages that show Python."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cryptmark
from support import PASSPHRASE, VolumeCase, needs, skip

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent


class Examples(VolumeCase):
    def test_dissect_lists_a_file_in_an_encrypted_image(self):
        try:
            from dissect.target import Target, container
            from dissect.target.helpers import keychain
            from dissect.util.stream import RelativeStream
            import dissect.extfs  # noqa: F401
        except ImportError:
            skip("Python: dissect.target or dissect.extfs is not installed")
        if shutil.which("mkfs.ext4") is None:
            skip("Python: mkfs.ext4 is not installed")
        sys.path.insert(0, str(PACKAGE / "examples"))
        self.addCleanup(sys.path.remove, str(PACKAGE / "examples"))
        import dissect_container

        content, files = self.folder / "content", self.folder / "files"
        (files / "etc").mkdir(parents=True)
        (files / "etc/hostname").write_text("from-inside\n")
        with content.open("wb") as file:
            file.truncate(6 << 20)
        make = ["mkfs.ext4", "-q", "-d", str(files), str(content)]
        subprocess.run(make, check=True)
        image = self.luks(2, 8 << 20)
        with cryptmark.open(image, PASSPHRASE, mode="r+b") as volume:
            volume.write(content.read_bytes())

        keychain.register_key(keychain.KeyType.PASSPHRASE, "another", provider="cryptmark")
        keychain.register_key(keychain.KeyType.PASSPHRASE, PASSPHRASE, provider="cryptmark")

        def check(target):
            self.assertIsInstance(target.disks[0], dissect_container.CryptmarkContainer)
            names = {entry.name for entry in target.filesystems[0].path("/etc").iterdir()}
            self.assertEqual(names, {"hostname"})
            text = target.filesystems[0].path("/etc/hostname").read_text()
            self.assertEqual(text, "from-inside\n")

        check(Target.open(image))
        # The image is in the middle of another file.
        larger = self.folder / "larger"
        larger.write_bytes(bytes(4096) + image.read_bytes() + bytes(4096))
        with larger.open("rb") as file:
            stream = RelativeStream(file, 4096, image.stat().st_size)
            target = Target()
            target.disks.add(container.open(stream))
            target.apply()
            check(target)
            self.assertNotIsInstance(container.open(file), dissect_container.CryptmarkContainer)

    def test_the_notebook_runs(self):
        needs("matplotlib")
        import matplotlib

        matplotlib.use("Agg")
        path = PACKAGE / "examples/first-paper.ipynb"
        cells = json.loads(path.read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(path.parent)
        names = {"__name__": "__main__"}
        for cell in code:
            exec(compile(cell, str(path), "exec"), names)
        self.assertTrue(names["figure"].axes[0].patches)


class Pages(VolumeCase):
    def test_python_of_the_pages_runs(self):
        for page in (PACKAGE / "README.md", ROOT / "docs/how-to/python.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
            self.assertTrue(blocks, page)
            self.luks(2, 8 << 20)
            self.addCleanup(os.chdir, os.getcwd())
            os.chdir(self.folder)
            names = {"__name__": "__main__"}
            for block in blocks:
                if "fsspec" in block:
                    needs("fsspec")
                quiet = contextlib.redirect_stdout(io.StringIO())
                with self.subTest(page=page.name, block=block), quiet:
                    exec(compile(block, str(page), "exec"), names)
