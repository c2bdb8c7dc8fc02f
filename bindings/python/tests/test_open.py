"""How volumes are opened, and what is refused."""

import gc
import io
import os
import unittest
import weakref

import cryptmark
from support import PASSPHRASE, VolumeCase


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
        path = self.folder / "noise"
        noise = os.urandom(1 << 20)
        plain = {"format": "plain", "mode": "r+b"}
        for source in (path, io.BytesIO(noise)):
            path.write_bytes(noise)
            cryptmark.open(source, PASSPHRASE, format="plain").close()
            with self.assertRaisesRegex(cryptmark.Protected, "decrypt to noise") as caught:
                cryptmark.open(source, PASSPHRASE, **plain)
            self.assertIn("allow `unknown`", caught.exception.remedy)
            with self.assertRaisesRegex(cryptmark.Protected, "decrypt to noise"):
                cryptmark.open(source, PASSPHRASE, allow=["data"], **plain)
            self.assertEqual(path.read_bytes(), noise)
            with self.assertRaises(cryptmark.BadInput):
                cryptmark.open(source, PASSPHRASE, allow=["nothing"], **plain)
            with cryptmark.open(source, PASSPHRASE, allow=["unknown"], **plain) as volume:
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
        with self.assertRaises(ValueError):
            cryptmark.open(path, PASSPHRASE, key_file=key)
        key.write_bytes(b"")
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.open(path, key_file=key)
        with key.open("wb") as file:
            file.truncate((8 << 20) + 1)
        with self.assertRaisesRegex(cryptmark.BadInput, "has more than 8388608 bytes"):
            cryptmark.open(path, key_file=key)
        with self.assertRaises(FileNotFoundError):
            cryptmark.open(path, key_file=self.folder / "none")

    def test_a_volume_key_opens(self):
        path, _ = self.plain()
        plain = {"format": "plain", "key_size": 512}
        with cryptmark.open(path, volume_key=bytes(range(64)), mode="r+b", **plain) as volume:
            volume.write(b"some bytes")
        with cryptmark.open(path, volume_key=bytes(range(64)), **plain) as volume:
            self.assertEqual(volume.read(10), b"some bytes")

    def test_a_header_may_be_in_another_file(self):
        path = self.luks()
        header, data = self.folder / "header", self.folder / "data"
        whole = path.read_bytes()
        header.write_bytes(whole[: 2 << 20])
        data.write_bytes(bytes(2 << 20) + whole[2 << 20 :])
        with cryptmark.open(path, PASSPHRASE) as one:
            with cryptmark.open(data, PASSPHRASE, header=header) as other:
                self.assertEqual(one.read(), other.read())

    def test_errors_say_what_they_mean(self):
        path = self.luks()
        with self.assertRaises(cryptmark.WrongSecret) as wrong:
            cryptmark.open(path, "wrong")
        self.assertIsInstance(wrong.exception, cryptmark.Error)
        self.assertIn("Check the passphrase", wrong.exception.remedy)
        self.assertNotIn("wrong", str(wrong.exception))
        with self.assertRaises(FileNotFoundError) as missing:
            cryptmark.open(self.folder / "none", PASSPHRASE)
        self.assertIsInstance(missing.exception, cryptmark.BadInput)
        self.assertEqual(missing.exception.errno, 2)
        with self.assertRaises(cryptmark.BadInput) as lacking:
            cryptmark.open(path)
        self.assertIsInstance(lacking.exception, ValueError)
        with self.assertRaisesRegex(cryptmark.BadInput, "`cipher` has no meaning"):
            cryptmark.open(path, PASSPHRASE, cipher="aes-xts-plain64")
        with self.assertRaisesRegex(cryptmark.BadInput, "unknown volume type"):
            cryptmark.open(path, PASSPHRASE, format="luks3")
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.info(self.plain()[0])
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.info(self.folder)
        with cryptmark.open(path, PASSPHRASE, mode="r+b"):
            with self.assertRaises(cryptmark.Protected):
                cryptmark.open(path, PASSPHRASE, mode="r+b")

    def test_wrong_types_and_values_are_refused_as_python_does(self):
        path = self.luks()
        for arguments in (
            {"passphrase": 7},
            {"key_file": 7},
            {"volume_key": "text"},
            {"passphrase": memoryview(b"abcdef")[::2]},
            {"passphrase": PASSPHRASE, "key_slot": "one"},
            {"passphrase": PASSPHRASE, "iv_large_sectors": 1},
            {"passphrase": PASSPHRASE, "format": 2},
            {"passphrase": PASSPHRASE, "keyfiles": str(path)},
            {"passphrase": PASSPHRASE, "keyfiles": [3]},
            {"passphrase": PASSPHRASE, "header": 3},
            {"passphrase": PASSPHRASE, "unknown": 3},
        ):
            with self.assertRaises(TypeError, msg=arguments):
                cryptmark.open(path, **arguments)
        for arguments in (
            {"mode": "wb"},
            {"mode": None},
            {"mode": []},
            {"passphrase": "\ud800"},
            {"passphrase": PASSPHRASE, "key_slot": -1},
            {"passphrase": PASSPHRASE, "offset": 1 << 64},
        ):
            with self.assertRaises((ValueError, OverflowError), msg=arguments):
                cryptmark.open(path, **arguments)
        for wrong in (None, 3, 3.5, object()):
            with self.assertRaises(TypeError):
                cryptmark.open(wrong, PASSPHRASE)
            with self.assertRaises(TypeError):
                cryptmark.info(wrong)
            with self.assertRaises(TypeError):
                cryptmark.Volume(wrong, "name", True)
        with self.assertRaises(ValueError):
            cryptmark.open("a\0b", PASSPHRASE)
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


if __name__ == "__main__":
    unittest.main()
