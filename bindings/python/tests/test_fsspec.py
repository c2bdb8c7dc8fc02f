"""Volumes through fsspec."""

import io
import json
import os
import pickle

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

    def test_errors_are_those_of_the_package_and_change_nothing(self):
        before, count = self.path.read_bytes(), len(os.listdir("/proc/self/fd"))
        for url in (self.url, f"cryptmark::file://{self.path}"):
            for error, name, mode, secret in (
                (cryptmark.WrongSecret, url, "rb", "wrong"),
                (cryptmark.WrongSecret, url, "r+b", "wrong"),
                (FileNotFoundError, url + "-none", "rb", PASSPHRASE),
                *((ValueError, url, mode, PASSPHRASE) for mode in ("wb", "ab", "xb", "w+b")),
            ):
                with self.assertRaises(error):
                    fsspec.open(name, mode, passphrase=secret).open()
            for mode in ("rb", "r+b"):
                with fsspec.open(url, mode, passphrase=PASSPHRASE) as file:
                    file.read(9)
        self.assertEqual(len(os.listdir("/proc/self/fd")), count)
        self.assertEqual(self.path.read_bytes(), before)

    def test_a_volume_is_a_file_and_behind_another_file_system(self):
        fsspec.filesystem("memory").pipe("/disk.img", self.path.read_bytes())
        self.addCleanup(fsspec.filesystem("memory").rm, "/disk.img")
        cache = {"simplecache": {"cache_storage": str(self.folder / "cache")}}
        one, options = {"passphrase": PASSPHRASE}, {"cryptmark": {"passphrase": PASSPHRASE}}
        for url, named, expected in (
            (self.url, one, str(self.path)),
            (f"cryptmark::file://{self.path}", options, ""),
            ("cryptmark::memory://disk.img", options, ""),
        ):
            with fsspec.open(url, "r+b", **named) as file:
                file.write(b"line 1\nline 2\n")
            with fsspec.open(url, **named) as file:
                self.assertIsInstance(file, io.BufferedReader)
                self.assertEqual(file.readline(), b"line 1\n")
                self.assertEqual((file.seek(0, 2), file.tell()), (2 << 20, 2 << 20))
            with fsspec.open(url, "rt", encoding="latin-1", **one) as text:
                self.assertEqual(text.readline(), "line 1\n")
            system, path = fsspec.url_to_fs(url, **named)
            self.assertEqual((path, system.ls(path, False)), (expected, [expected]))
            self.assertTrue(system.isfile(path) and system.exists(path))
            self.assertFalse(system.exists("other"))
            self.assertRaises(FileNotFoundError, system.open, "other")
            self.assertEqual(system.cat_file(path, start=5, end=9), b"1\nli")
            for same in (system, pickle.loads(pickle.dumps(system))):
                self.assertEqual(same.size(path), 2 << 20)
            if url != self.url:
                url = url.replace("::", "::simplecache::")
                with fsspec.open(url, **options, **cache) as file:
                    self.assertEqual(file.readline(), b"line 1\n")
        # The URL is a path, too.
        system = fsspec.filesystem("cryptmark", **one)
        self.assertEqual((system.size(self.url), system.exists(self.url)), (2 << 20, True))
        self.assertFalse(system.exists(self.url + "-none"))

    def test_a_file_object_is_behind_it(self):
        with self.path.open("rb") as file:
            system = fsspec.filesystem("cryptmark", fo=file, passphrase=PASSPHRASE)
            with system.open("") as volume, cryptmark.open(self.path, PASSPHRASE) as expected:
                self.assertEqual(volume.read(999), expected.read(999))
            self.assertFalse(file.closed)

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
