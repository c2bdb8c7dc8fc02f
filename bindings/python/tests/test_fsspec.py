"""Volumes through fsspec."""

import io
import pickle
import unittest

import cryptmark
from support import PASSPHRASE, VolumeCase, skip

try:
    import fsspec
except ImportError:
    fsspec = None


class Fsspec(VolumeCase):
    def setUp(self):
        super().setUp()
        if fsspec is None:
            skip("Python: fsspec is not installed")
        if "cryptmark" not in fsspec.available_protocols():
            skip("Python: the package is not installed for fsspec")
        self.path = self.luks()
        self.url = f"cryptmark://{self.path}"

    def test_a_volume_is_a_file(self):
        with fsspec.open(self.url, "r+b", passphrase=PASSPHRASE) as file:
            file.write(b"line 1\nline 2\n")
        with fsspec.open(self.url, passphrase=PASSPHRASE) as file:
            self.assertIsInstance(file, io.BufferedReader)
            self.assertEqual(file.readline(), b"line 1\n")
            file.seek(0, 2)
            self.assertEqual(file.tell(), 2 << 20)
        with fsspec.open(self.url, "rt", encoding="latin-1", passphrase=PASSPHRASE) as text:
            self.assertEqual(text.readline(), "line 1\n")

    def test_the_file_system_knows_it(self):
        system = fsspec.filesystem("cryptmark", passphrase=PASSPHRASE)
        self.assertEqual(system.size(self.url), 2 << 20)
        self.assertTrue(system.isfile(self.url) and system.exists(self.url))
        self.assertFalse(system.exists(self.url + "-none"))
        self.assertEqual(system.ls(self.url, detail=False), [str(self.path)])
        with cryptmark.open(self.path, PASSPHRASE) as volume:
            self.assertEqual(system.cat_file(self.url, start=5, end=700), volume.pread(695, 5))
        again = pickle.loads(pickle.dumps(system))
        self.assertEqual(again.size(self.url), 2 << 20)

    def test_errors_are_those_of_the_package(self):
        with self.assertRaises(cryptmark.WrongSecret):
            fsspec.open(self.url, passphrase="wrong").open()
        with self.assertRaises(FileNotFoundError):
            fsspec.open(self.url + "-none", passphrase=PASSPHRASE).open()
        with self.assertRaises(ValueError):
            fsspec.open(self.url, "wb", passphrase=PASSPHRASE).open()


if __name__ == "__main__":
    unittest.main()
