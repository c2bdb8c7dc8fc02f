"""Volumes that are made, reencrypted, converted and resized."""

import unittest

import cryptmark
from support import PASSPHRASE, VolumeCase

CHEAP = {"pbkdf": "pbkdf2", "iter_time": 1}
SIZE = 20 << 20


class Operate(VolumeCase):
    def made(self, name="new.img", size=SIZE, **options):
        path = self.folder / name
        created = cryptmark.create(path, passphrase=PASSPHRASE, size=size, **CHEAP, **options)
        return path, created

    def test_a_volume_of_each_format_is_made_and_holds_what_is_written(self):
        for format, options in (
            ("luks2", {"label": "mine", "cipher": "serpent-xts-plain64", "key_size": 256}),
            ("luks2", {"integrity": "hmac-sha256"}),
            ("luks1", {"hash": "sha512"}),
            ("veracrypt", {"quick": True, "veracrypt_pim": 1, "allow": ["weak"]}),
            ("tcrypt", {"cipher": "aes-twofish"}),
        ):
            path = self.folder / "disk.img"
            costs = CHEAP if format.startswith("luks") else {}
            created = cryptmark.create(path, format, PASSPHRASE, size=SIZE, **costs, **options)
            self.assertEqual(created["format"], format)
            how = {key: options[key] for key in options if key == "veracrypt_pim"}
            known = {} if format.startswith("luks") else {"format": format}
            with cryptmark.open(path, PASSPHRASE, mode="r+b", **known, **how) as volume:
                self.assertEqual(volume.size, created["size"])
                volume.write(b"content")
            with cryptmark.open(path, PASSPHRASE, **known, **how) as volume:
                self.assertEqual(volume.read(7), b"content")
                if "label" in options:
                    self.assertIn("mine", str(volume.info))
            path.unlink()

    def test_losses_are_asked_for(self):
        path, _ = self.made()
        before = path.read_bytes()
        with self.assertRaises(cryptmark.Protected) as raised:
            self.made()
        self.assertEqual(raised.exception.question, "data")
        asked = []

        def refuse(loss, found):
            asked.append((loss, found))
            return False

        with self.assertRaises(cryptmark.Protected):
            self.made(ask=refuse)
        self.assertEqual(asked[0][0], "data")
        self.assertIn("LUKS2", asked[0][1])
        with self.assertRaises(ZeroDivisionError):
            self.made(ask=lambda *_: 1 // 0)
        for allow in ("data", ["nothing"]):
            with self.assertRaises((TypeError, cryptmark.BadInput)):
                self.made(allow=allow)
        self.assertEqual(path.read_bytes(), before)
        self.made(ask=lambda *_: True)
        self.made(allow=["data"])
        self.assertNotEqual(path.read_bytes(), before)

    def test_what_cannot_be_leaves_no_file(self):
        path = self.folder / "none.img"
        for options in (
            {"size": None},
            {"cipher": "rot13"},
            {"format": "bitlk"},
            {"format": "luks1", "label": "x"},
            {"format": "luks1", "pbkdf": "argon2id"},
            {"veracrypt_pim": 5},
            {"passphrase": ""},
            {"passphrase": None},
            {"volume_key": b"short"},
            {"volume_key": bytes(64)},
        ):
            arguments = {"passphrase": PASSPHRASE, "size": SIZE, **options}
            with self.assertRaises(cryptmark.BadInput, msg=options):
                cryptmark.create(path, **arguments)
            self.assertFalse(path.exists(), options)

    def test_data_get_another_key_and_keep_their_content(self):
        # More than is worked on at a time.
        path, _ = self.made(size=64 << 20)
        cryptmark.add_key(path, PASSPHRASE, "two", **CHEAP)
        with cryptmark.open(path, PASSPHRASE, mode="r+b") as volume:
            volume.write(b"content")
        with self.assertRaises(cryptmark.Protected) as raised:
            cryptmark.reencrypt(path, PASSPHRASE, **CHEAP)
        self.assertEqual(raised.exception.question, "keyslots")
        with self.assertRaises(ValueError):
            cryptmark.reencrypt(path)
        with self.assertRaises(cryptmark.WrongSecret):
            cryptmark.reencrypt(path, PASSPHRASE, keep=["three"], **CHEAP)
        told = []

        def stop(done, total):
            told.append((done, total))
            raise KeyError("stop")

        with self.assertRaises(KeyError):
            cryptmark.reencrypt(path, PASSPHRASE, keep=["two"], progress=stop, **CHEAP)
        self.assertEqual(len(told), 1)
        # It goes on with what it began with.
        cryptmark.reencrypt(path, "two")
        for secret in (PASSPHRASE, "two"):
            with cryptmark.open(path, secret) as volume:
                self.assertEqual(volume.read(7), b"content")
        cryptmark.reencrypt(
            path, "two", cipher="twofish-xts-plain64", sector_size=4096, allow=["keyslots"], **CHEAP
        )
        with cryptmark.open(path, "two") as volume:
            self.assertIn("twofish-xts-plain64", str(volume.info))
            self.assertEqual(volume.read(7), b"content")

    def test_data_are_encrypted_where_they_are_and_decrypted(self):
        path = self.folder / "plain.img"
        # More than is worked on at a time.
        plain = b"content" * (10 << 20)
        path.write_bytes(plain)
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.encrypt(path, "", **CHEAP)
        with self.assertRaises(ValueError):
            cryptmark.encrypt(path)
        self.assertEqual(path.read_bytes(), plain)

        def stop(done, total):
            if done:
                raise KeyError("stop")

        with self.assertRaises(KeyError):
            cryptmark.encrypt(path, PASSPHRASE, progress=stop, **CHEAP)
        with cryptmark.open(path, PASSPHRASE) as volume:
            self.assertEqual(volume.read(len(plain)), plain)
        with self.assertRaises(cryptmark.Protected):
            cryptmark.decrypt(path, PASSPHRASE)
        cryptmark.encrypt(path, PASSPHRASE)
        with self.assertRaises(cryptmark.Protected):
            cryptmark.encrypt(path, PASSPHRASE, **CHEAP)
        with cryptmark.open(path, PASSPHRASE) as volume:
            self.assertEqual(volume.read(len(plain)), plain)
        with self.assertRaises(KeyError):
            cryptmark.decrypt(path, PASSPHRASE, progress=stop)
        self.assertTrue(path.with_name("plain.img.cryptmark-header").exists())
        cryptmark.decrypt(path, PASSPHRASE)
        self.assertEqual(path.read_bytes(), plain)
        self.assertFalse(path.with_name("plain.img.cryptmark-header").exists())

    def test_a_veracrypt_volume_gets_another_key(self):
        vera = {"format": "veracrypt", "veracrypt_pim": 1}
        path = self.folder / "vera.img"
        cryptmark.create(
            path, passphrase=PASSPHRASE, size=4 << 20, quick=True, allow=["weak"], **vera
        )
        with cryptmark.open(path, PASSPHRASE, mode="r+b", **vera) as volume:
            volume.write(b"content")
        with self.assertRaises(cryptmark.Protected) as raised:
            cryptmark.reencrypt(path, PASSPHRASE, **vera, **CHEAP)
        self.assertEqual(raised.exception.question, "hidden")
        cryptmark.reencrypt(
            path, PASSPHRASE, cipher="serpent", allow=["hidden"], **vera, **CHEAP
        )
        with cryptmark.open(path, PASSPHRASE, **vera) as volume:
            self.assertIn("serpent", str(volume.info))
            self.assertEqual(volume.read(7), b"content")

    def test_a_hidden_volume_is_made_in_another_one(self):
        vera = {"format": "veracrypt", "veracrypt_pim": 1}
        path = self.folder / "vera.img"
        cryptmark.create(
            path, passphrase=PASSPHRASE, size=4 << 20, quick=True, allow=["weak"], **vera
        )
        made = (path, PASSPHRASE, "hidden", 1 << 20)
        pims = {"outer_pim": 1, "veracrypt_pim": 1}
        before = path.read_bytes()
        with self.assertRaises(cryptmark.Protected) as raised:
            cryptmark.create_hidden(*made, **pims)
        self.assertEqual(raised.exception.question, "hidden")
        allow = {"allow": ["hidden", "weak"]}
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.create_hidden(path, PASSPHRASE, PASSPHRASE, 1 << 20, **pims, **allow)
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.create_hidden(path, PASSPHRASE, "hidden", 4 << 20, **pims, **allow)
        with self.assertRaises(cryptmark.WrongSecret):
            cryptmark.create_hidden(path, "wrong", "hidden", 1 << 20, **pims, **allow)
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual(cryptmark.create_hidden(*made, **pims, **allow), 1 << 20)
        with cryptmark.open(path, "hidden", tcrypt_hidden=True, **vera) as volume:
            self.assertEqual(volume.size, 1 << 20)
        with cryptmark.open(path, PASSPHRASE, **vera) as volume:
            self.assertGreater(volume.size, 1 << 20)

    def test_sizes_and_versions_change(self):
        path, _ = self.made(sector_size=512)
        with self.assertRaises(cryptmark.Protected) as raised:
            cryptmark.resize(path, SIZE - (1 << 20))
        self.assertEqual(raised.exception.question, "cut-off")
        smaller = cryptmark.resize(path, SIZE - (1 << 20), allow=["cut-off"])
        self.assertEqual(smaller, 3 << 20)
        self.assertEqual(cryptmark.resize(path, SIZE), 4 << 20)
        self.assertEqual(path.stat().st_size, SIZE)
        self.assertTrue(cryptmark.convert(path, "luks1"))
        self.assertFalse(cryptmark.convert(path, "luks1"))
        self.assertTrue(cryptmark.convert(path, "luks2"))
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.convert(path, "plain")
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.reencrypt(self.made("one.img", format="luks1")[0], PASSPHRASE)
        vera = {"format": "veracrypt", "veracrypt_pim": 1}
        path = self.folder / "vera.img"
        cryptmark.create(
            path, passphrase=PASSPHRASE, size=1 << 20, quick=True, allow=["weak"], **vera
        )
        grown = cryptmark.resize(path, 2 << 20, PASSPHRASE, **vera)
        with cryptmark.open(path, PASSPHRASE, **vera) as volume:
            self.assertEqual(volume.size, grown)
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.resize(path, 3 << 20, **vera)
        cryptmark.change_password(path, "veracrypt", PASSPHRASE, "two", veracrypt_pim=1)
        with self.assertRaises(cryptmark.WrongSecret):
            cryptmark.open(path, PASSPHRASE, hash="sha512", **vera)
        with cryptmark.open(path, "two", **vera) as volume:
            self.assertEqual(volume.size, grown)
        with self.assertRaises(ValueError):
            cryptmark.change_password(path, "veracrypt", PASSPHRASE)
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.change_password(path, "luks2", PASSPHRASE, "two")

    def test_headers_are_kept_put_back_and_mended(self):
        path, created = self.made()
        saved = self.folder / "saved"
        self.assertIn(created["uuid"], cryptmark.backup_header(path, saved))
        self.assertEqual(saved.stat().st_mode & 0o777, 0o600)
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.backup_header(path, saved)
        cryptmark.add_key(path, PASSPHRASE, "two", **CHEAP)
        with self.assertRaises(cryptmark.Protected) as raised:
            cryptmark.restore_header(path, saved)
        self.assertEqual(raised.exception.question, "replaced")
        said = cryptmark.restore_header(path, saved, ask=lambda loss, _: loss == "replaced")
        self.assertIn(created["uuid"], said)
        with self.assertRaises(cryptmark.WrongSecret):
            cryptmark.open(path, "two")
        with path.open("r+b") as file:
            file.write(bytes(4096))
            file.seek(16384)
            file.write(bytes(4096))
        with self.assertRaises(cryptmark.Protected) as raised:
            cryptmark.repair_header(path)
        self.assertEqual(raised.exception.question, "unproved")
        self.assertIn("rebuilt", cryptmark.repair_header(path, PASSPHRASE, uuid=created["uuid"]))
        self.assertIn("good", cryptmark.repair_header(path))
        with cryptmark.open(path, PASSPHRASE) as volume:
            self.assertEqual(volume.size, created["size"])
        vera = self.folder / "vera.img"
        how = {"format": "veracrypt", "veracrypt_pim": 1}
        cryptmark.create(
            vera, passphrase=PASSPHRASE, size=1 << 20, quick=True, allow=["weak"], **how
        )
        kept = self.folder / "kept"
        cryptmark.backup_header(vera, kept, format="veracrypt")
        with vera.open("r+b") as file:
            file.write(bytes(65536))
        said = cryptmark.repair_header(vera, PASSPHRASE, **how)
        self.assertIn("rewritten from its copy", said)
        self.assertIn("rewritten", cryptmark.restore_header(vera, kept, PASSPHRASE, **how))


if __name__ == "__main__":
    unittest.main()
