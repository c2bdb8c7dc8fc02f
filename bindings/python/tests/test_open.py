"""How volumes are opened, and what is refused."""

import gc
import io
import os
import weakref

import cryptmark
from support import PASSPHRASE, SIZE, VolumeCase


class Opening(VolumeCase):
    def test_formats_are_found_by_their_signatures(self):
        for version in (1, 2):
            path = self.luks(version, name=f"{version}.img")
            with cryptmark.open(path, PASSPHRASE) as volume:
                self.assertIsInstance(volume, io.RawIOBase)
                self.assertEqual(volume.size, 2 << 20)
                self.assertEqual(volume.info["format"], f"luks{version}")
                self.assertEqual(volume.info["mappings"][0]["cipher"], "aes-xts-plain64")
                self.assertEqual((volume.name, volume.mode), (str(path), "rb"))
                self.assertIn(f"format='luks{version}' size=2097152", repr(volume))
            self.assertTrue(volume.closed)
            self.assertIn("closed", repr(volume))
            said = cryptmark.info(path)
            self.assertEqual((said["format"], list(said["keyslots"])), (f"luks{version}", ["0"]))
            self.assertEqual(cryptmark.info(path, f"luks{version}"), said)
        self.assertIn("veracrypt", cryptmark.formats())

    def test_a_loss_is_allowed_by_its_name(self):
        noise = os.urandom(SIZE)
        path = self.plain(content=noise)
        write = {"passphrase": PASSPHRASE, "format": "plain", "mode": "r+b"}
        for source in (path, io.BytesIO(noise)):
            cryptmark.open(source, PASSPHRASE, format="plain").close()
            for allow in ([], ["data"]):
                error = self.refused(cryptmark.Protected, cryptmark.open, source, allow=allow, **write)
                self.assertIn("decrypt to noise", str(error))
                self.assertIn("allow `unknown`", error.remedy)
            self.assertEqual(path.read_bytes(), noise)
            self.refused(cryptmark.BadInput, cryptmark.open, source, allow=["nothing"], **write)
            self.refused(TypeError, cryptmark.open, source, allow="unknown", **write)
        for source in (path, io.BytesIO(noise)):
            with cryptmark.open(source, allow=["unknown"], **write) as volume:
                volume.write(b"written")

    def test_secrets_have_several_forms(self):
        path = self.luks()
        raw = PASSPHRASE.encode()
        kept = bytearray(raw)
        key = self.folder / "key"
        key.write_bytes(raw)
        for secret in (PASSPHRASE, raw, kept, memoryview(raw)):
            cryptmark.open(path, secret).close()
        for secret in (str(key), key, raw, kept):
            cryptmark.open(path, key_file=secret).close()
        cryptmark.open(os.fsencode(path), PASSPHRASE, key_slot=0).close()
        # It is the caller's.
        self.assertEqual(kept, raw)
        self.refused(ValueError, cryptmark.open, path, PASSPHRASE, key_file=key)
        for content, said in ((b"", "empty"), (bytes((8 << 20) + 1), "has more than 8388608 bytes")):
            key.write_bytes(content)
            self.assertIn(said, str(self.refused(cryptmark.BadInput, cryptmark.open, path, key_file=key)))
        self.refused(FileNotFoundError, cryptmark.open, path, key_file=self.folder / "none")

    def test_a_volume_key_opens(self):
        path = self.plain()
        plain = {"format": "plain", "key_size": 512}
        with cryptmark.open(path, volume_key=bytes(range(64)), mode="r+b", **plain) as volume:
            volume.write(b"some bytes")
        with cryptmark.open(path, volume_key=bytes(range(64)), **plain) as volume:
            self.assertEqual(volume.read(10), b"some bytes")

    def test_errors_say_what_they_mean(self):
        path = self.luks()
        wrong = self.refused(cryptmark.WrongSecret, cryptmark.open, path, "wrong")
        self.assertIsInstance(wrong, cryptmark.Error)
        self.assertIn("Check the passphrase", wrong.remedy)
        self.assertNotIn("wrong", str(wrong))
        missing = self.refused(FileNotFoundError, cryptmark.open, self.folder / "none", PASSPHRASE)
        self.assertIsInstance(missing, cryptmark.BadInput)
        self.assertEqual(missing.errno, 2)
        for said, options in (
            ("", {"passphrase": None}),
            ("`cipher` has no meaning", {"cipher": "aes-xts-plain64"}),
            ("unknown volume type", {"format": "luks3"}),
        ):
            options = {"passphrase": PASSPHRASE, **options}
            lacking = self.refused(cryptmark.BadInput, cryptmark.open, path, **options)
            self.assertIsInstance(lacking, ValueError)
            self.assertIn(said, str(lacking))
        for other in (self.plain(), self.folder):
            self.refused(cryptmark.BadInput, cryptmark.info, other)
        with cryptmark.open(path, PASSPHRASE, mode="r+b"):
            self.refused(cryptmark.Protected, cryptmark.open, path, PASSPHRASE, mode="r+b")

    def test_wrong_types_and_values_are_refused_as_python_does(self):
        path = self.luks()
        for arguments in (
            {"passphrase": 7},
            {"key_file": 7},
            {"volume_key": "text"},
            {"passphrase": memoryview(b"abcdef")[::2]},
            {"passphrase": PASSPHRASE, "key_slot": "one"},
            {"passphrase": PASSPHRASE, "iv_large_sectors": 1},
            {"passphrase": PASSPHRASE, "iv_large_sectors": None},
            {"passphrase": PASSPHRASE, "format": 2},
            {"passphrase": PASSPHRASE, "keyfiles": str(path)},
            {"passphrase": PASSPHRASE, "keyfiles": [3]},
            {"passphrase": PASSPHRASE, "header": 3},
            {"passphrase": PASSPHRASE, "unknown": 3},
        ):
            self.refused(TypeError, cryptmark.open, path, **arguments)
        for arguments in (
            {"mode": "wb"},
            {"mode": None},
            {"mode": []},
            {"passphrase": "\ud800"},
            {"passphrase": PASSPHRASE, "key_slot": -1},
            {"passphrase": PASSPHRASE, "offset": 1 << 64},
        ):
            self.refused((ValueError, OverflowError), cryptmark.open, path, **arguments)
        for wrong in (None, 3, 3.5, object()):
            self.refused(TypeError, cryptmark.open, wrong, PASSPHRASE)
            self.refused(TypeError, cryptmark.info, wrong)
            self.refused(TypeError, cryptmark.Volume, wrong, "name", True)
        self.refused(ValueError, cryptmark.open, "a\0b", PASSPHRASE)
        half = cryptmark.Volume.__new__(cryptmark.Volume)
        for use in (half.read, half.tell, lambda: half.size, lambda: half.pread(1, 1)):
            self.assertRaises(ValueError, use)
        self.assertIn("closed", repr(half))
        half.close()

    def test_no_secret_shows(self):
        with cryptmark.open(self.luks(), PASSPHRASE) as volume:
            said = f"{volume!r} {volume!s} {volume.info} {volume.__dict__}"
            self.assertNotIn("horse", said)

    def test_volumes_end_with_their_last_reference(self):
        path = self.luks()
        volume = cryptmark.open(path, PASSPHRASE, mode="r+b")
        volume.itself = [volume]
        gone = weakref.ref(volume)
        del volume
        gc.collect()
        self.assertIsNone(gone())
        # Its lock is given up.
        for _ in range(20):
            cryptmark.open(path, PASSPHRASE, mode="r+b")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            cryptmark.open(path, PASSPHRASE).read(1)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)
