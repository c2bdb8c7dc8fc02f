"""Volumes through fsspec."""

import io
import json
import os
import pickle
import unittest

import cryptmark
from support import PASSPHRASE, VolumeCase, skip

try:
    import fsspec
    from fsspec.utils import tokenize
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

    def test_a_volume_is_behind_another_file_system(self):
        fsspec.filesystem("memory").pipe("/disk.img", self.path.read_bytes())
        self.addCleanup(fsspec.filesystem("memory").rm, "/disk.img")
        cache = {"simplecache": {"cache_storage": str(self.folder / "cache")}}
        chains = ("file://" + str(self.path), "memory://disk.img")
        for url in chains:
            url = f"cryptmark::{url}"
            options = {"cryptmark": {"passphrase": PASSPHRASE}}
            with fsspec.open(url, "r+b", **options) as file:
                file.write(b"line 1\nline 2\n")
            with fsspec.open(url, **options) as file:
                self.assertIsInstance(file, io.BufferedReader)
                self.assertEqual(file.readline(), b"line 1\n")
                self.assertEqual(file.seek(0, 2), 2 << 20)
            with fsspec.open(url, "rt", encoding="latin-1", passphrase=PASSPHRASE) as text:
                self.assertEqual(text.readline(), "line 1\n")
            system, path = fsspec.url_to_fs(url, **options)
            self.assertEqual((path, system.size(path), system.ls(path, False)), ("", 2 << 20, [""]))
            self.assertEqual(system.cat_file(path, 5, 9), b"1\nli")
            self.assertFalse(system.exists("other"))
            self.assertRaises(FileNotFoundError, system.open, "other")
            again = pickle.loads(pickle.dumps(system))
            self.assertEqual(again.size(path), 2 << 20)
            url = url.replace("::", "::simplecache::")
            with fsspec.open(url, **options, **cache) as file:
                self.assertEqual(file.readline(), b"line 1\n")

    def test_a_file_object_is_behind_it(self):
        with self.path.open("rb") as file:
            system = fsspec.filesystem("cryptmark", fo=file, passphrase=PASSPHRASE)
            with system.open("") as volume, cryptmark.open(self.path, PASSPHRASE) as expected:
                self.assertEqual(volume.read(999), expected.read(999))
            self.assertFalse(file.closed)

    def test_files_below_are_closed_and_not_emptied(self):
        url, before = f"cryptmark::file://{self.path}", self.path.read_bytes()
        count = len(os.listdir("/proc/self/fd"))
        for mode in ("wb", "ab", "xb", "w+b"):
            with self.assertRaises(ValueError):
                fsspec.open(url, mode, passphrase=PASSPHRASE).open()
        for mode in ("rb", "r+b"):
            with self.assertRaises(cryptmark.WrongSecret):
                fsspec.open(url, mode, passphrase="wrong").open()
            with fsspec.open(url, mode, passphrase=PASSPHRASE) as file:
                file.read(9)
        self.assertEqual(len(os.listdir("/proc/self/fd")), count)
        with self.assertRaises(FileNotFoundError):
            fsspec.open(url + "-none", passphrase=PASSPHRASE).open()
        self.assertEqual(self.path.read_bytes(), before)

    def test_no_secret_shows(self):
        options = {"cryptmark": {"passphrase": PASSPHRASE}}
        for url in (self.url, f"cryptmark::file://{self.path}", f"cryptmark::cryptmark://{self.path}"):
            file = fsspec.open(url, **{name: dict(value) for name, value in options.items()})
            system = file.fs
            said = f"{file!r} {file} {system!r} {system}"
            said += json.dumps(system.to_dict(include_password=False))
            said += system.to_json(include_password=False)
            self.assertNotIn("horse", said)
            # A hash of the options would let others try passphrases.
            token = tokenize(*system.storage_args, **system.storage_options)
            self.assertNotIn(system._fs_token, (token, system._fs_token_))
            self.assertNotIn(system, type(system)._cache.values())
            same = type(system)(**system.storage_options)
            self.assertEqual((system, hash(system)), (same, hash(same)))
            other = type(system)(**{**system.storage_options, "passphrase": "another"})
            self.assertNotEqual(system, other)


if __name__ == "__main__":
    unittest.main()
