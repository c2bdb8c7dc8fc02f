"""Volumes that are made and changed, and their key slots."""

import shutil

import cryptmark
from support import CHEAP, PASSPHRASE, VERA, VolumeCase

SIZE = 20 << 20


class Operate(VolumeCase):
    def made(self, name="new.img", size=SIZE, **options):
        path = self.folder / name
        created = cryptmark.create(path, passphrase=PASSPHRASE, size=size, **CHEAP, **options)
        return path, created

    def write(self, path, **how):
        with cryptmark.open(path, PASSPHRASE, mode="r+b", **how) as volume:
            volume.write(b"content")
            return volume.size

    def info_of(self, path, secret=PASSPHRASE, content=b"content", **how):
        """What is known of the volume, which has the content."""
        with cryptmark.open(path, secret, **how) as volume:
            self.assertEqual(volume.read(len(content)), content)
            return str(volume.info)

    def size_of(self, path, secret=PASSPHRASE, **how):
        with cryptmark.open(path, secret, **how) as volume:
            return volume.size

    def test_a_volume_of_each_format_is_made_and_holds_what_is_written(self):
        serpent = {"label": "mine", "cipher": "serpent-xts-plain64", "key_size": 256}
        pim = {"veracrypt_pim": 1}
        for format, options, how in (
            ("luks2", {**serpent, **CHEAP}, {}),
            ("luks2", {"integrity": "hmac-sha256", **CHEAP}, {}),
            ("luks1", {"hash": "sha512", **CHEAP}, {}),
            ("veracrypt", {"quick": True, "allow": ["weak"], **pim}, VERA),
            ("tcrypt", {"cipher": "aes-twofish"}, {"format": "tcrypt"}),
        ):
            path = self.folder / "disk.img"
            created = cryptmark.create(path, format, PASSPHRASE, size=SIZE, **options)
            self.assertEqual(created["format"], format)
            self.assertEqual(self.write(path, **how), created["size"])
            self.assertIn(options.get("label", ""), self.info_of(path, **how))
            path.unlink()

    def test_losses_are_asked_for(self):
        path, _ = self.made()
        before = path.read_bytes()
        self.asks("data", self.made)
        asked = []
        self.refused(cryptmark.Protected, self.made, ask=lambda *it: asked.append(it))
        self.assertEqual(asked[0][0], "data")
        self.assertIn("LUKS2", asked[0][1])
        self.refused(ZeroDivisionError, self.made, ask=lambda *_: 1 // 0)
        for allow in ("data", ["nothing"]):
            self.refused((TypeError, cryptmark.BadInput), self.made, allow=allow)
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
            self.refused(cryptmark.BadInput, cryptmark.create, path, **arguments)
            self.assertFalse(path.exists(), options)

    def test_data_get_another_key_and_keep_their_content(self):
        # More than is worked on at a time.
        path, _ = self.made(size=64 << 20)
        cryptmark.add_key(path, PASSPHRASE, "two", **CHEAP)
        self.write(path)
        self.asks("keyslots", cryptmark.reencrypt, path, PASSPHRASE, **CHEAP)
        self.refused(ValueError, cryptmark.reencrypt, path)
        change = {"passphrase": PASSPHRASE, **CHEAP}
        self.refused(cryptmark.WrongSecret, cryptmark.reencrypt, path, keep=["three"], **change)
        told = []

        def stop(done, total):
            told.append((done, total))
            raise KeyError("stop")

        self.refused(KeyError, cryptmark.reencrypt, path, keep=["two"], progress=stop, **change)
        self.assertEqual(len(told), 1)
        # It goes on with what it began with.
        cryptmark.reencrypt(path, "two")
        for secret in (PASSPHRASE, "two"):
            self.info_of(path, secret)
        other = {"cipher": "twofish-xts-plain64", "sector_size": 4096, "allow": ["keyslots"]}
        cryptmark.reencrypt(path, "two", **other, **CHEAP)
        self.assertIn("twofish-xts-plain64", self.info_of(path, "two"))

    def test_data_are_encrypted_where_they_are_and_decrypted(self):
        path = self.folder / "plain.img"
        header = path.with_name("plain.img.cryptmark-header")
        # More than is worked on at a time.
        plain = b"content" * (10 << 20)
        path.write_bytes(plain)
        self.refused(cryptmark.BadInput, cryptmark.encrypt, path, "", **CHEAP)
        self.refused(ValueError, cryptmark.encrypt, path)
        self.assertEqual(path.read_bytes(), plain)

        def stop(done, total):
            if done:
                raise KeyError("stop")

        how = {"path": path, "passphrase": PASSPHRASE}
        self.refused(KeyError, cryptmark.encrypt, progress=stop, **how, **CHEAP)
        self.info_of(path, content=plain)
        self.refused(cryptmark.Protected, cryptmark.decrypt, **how)
        cryptmark.encrypt(**how)
        self.refused(cryptmark.Protected, cryptmark.encrypt, **how, **CHEAP)
        self.info_of(path, content=plain)
        self.refused(KeyError, cryptmark.decrypt, progress=stop, **how)
        self.assertTrue(header.exists())
        cryptmark.decrypt(**how)
        self.assertEqual(path.read_bytes(), plain)
        self.assertFalse(header.exists())

    def test_a_veracrypt_volume_gets_another_key(self):
        path = self.vera(4 << 20)
        self.write(path, **VERA)
        self.asks("hidden", cryptmark.reencrypt, path, PASSPHRASE, **VERA, **CHEAP)
        cryptmark.reencrypt(path, PASSPHRASE, cipher="serpent", allow=["hidden"], **VERA, **CHEAP)
        self.assertIn("serpent", self.info_of(path, **VERA))

    def test_a_hidden_volume_is_made_in_another_one(self):
        path = self.vera(4 << 20)
        before = path.read_bytes()
        how = {"outer_pim": 1, "veracrypt_pim": 1}
        self.asks("hidden", cryptmark.create_hidden, path, PASSPHRASE, "hidden", 1 << 20, **how)
        how["allow"] = ["hidden", "weak"]
        for error, secret, hidden, size in (
            (cryptmark.BadInput, PASSPHRASE, PASSPHRASE, 1 << 20),
            (cryptmark.BadInput, PASSPHRASE, "hidden", 4 << 20),
            (cryptmark.WrongSecret, "wrong", "hidden", 1 << 20),
            (ValueError, None, "hidden", 1 << 20),
            (ValueError, PASSPHRASE, None, 1 << 20),
        ):
            self.refused(error, cryptmark.create_hidden, path, secret, hidden, size, **how)
        self.assertEqual(path.read_bytes(), before)
        made = cryptmark.create_hidden(path, PASSPHRASE, "hidden", 1 << 20, **how)
        self.assertEqual(made, 1 << 20)
        self.assertEqual(self.size_of(path, "hidden", tcrypt_hidden=True, **VERA), 1 << 20)
        self.assertGreater(self.size_of(path, **VERA), 1 << 20)

    def test_sizes_and_versions_change(self):
        path, _ = self.made(sector_size=512)
        self.asks("cut-off", cryptmark.resize, path, SIZE - (1 << 20))
        smaller = cryptmark.resize(path, SIZE - (1 << 20), allow=["cut-off"])
        self.assertEqual(smaller, 3 << 20)
        self.assertEqual(cryptmark.resize(path, SIZE), 4 << 20)
        self.assertEqual(path.stat().st_size, SIZE)
        self.assertTrue(cryptmark.convert(path, "luks1"))
        self.assertFalse(cryptmark.convert(path, "luks1"))
        self.assertTrue(cryptmark.convert(path, "luks2"))
        self.refused(cryptmark.BadInput, cryptmark.convert, path, "plain")
        luks1, _ = self.made("one.img", format="luks1")
        self.refused(cryptmark.BadInput, cryptmark.reencrypt, luks1, PASSPHRASE)

    def test_a_veracrypt_volume_grows_and_gets_another_password(self):
        path = self.vera(1 << 20)
        grown = cryptmark.resize(path, 2 << 20, PASSPHRASE, **VERA)
        self.assertEqual(self.size_of(path, **VERA), grown)
        self.refused(cryptmark.BadInput, cryptmark.resize, path, 3 << 20, **VERA)
        change = cryptmark.change_password
        change(path, "veracrypt", PASSPHRASE, "two", veracrypt_pim=1)
        self.refused(cryptmark.WrongSecret, self.size_of, path, hash="sha512", **VERA)
        self.assertEqual(self.size_of(path, "two", **VERA), grown)
        self.refused(ValueError, change, path, "veracrypt", PASSPHRASE)
        self.refused(cryptmark.BadInput, change, path, "luks2", PASSPHRASE, "two")

    def test_headers_are_kept_put_back_and_mended(self):
        path, created = self.made()
        saved = self.folder / "saved"
        self.assertIn(created["uuid"], cryptmark.backup_header(path, saved))
        self.assertEqual(saved.stat().st_mode & 0o777, 0o600)
        self.refused(cryptmark.BadInput, cryptmark.backup_header, path, saved)
        cryptmark.add_key(path, PASSPHRASE, "two", **CHEAP)
        self.asks("replaced", cryptmark.restore_header, path, saved)
        said = cryptmark.restore_header(path, saved, ask=lambda loss, _: loss == "replaced")
        self.assertIn(created["uuid"], said)
        self.refused(cryptmark.WrongSecret, cryptmark.open, path, "two")
        with path.open("r+b") as file:
            for at in (0, 16384):
                file.seek(at)
                file.write(bytes(4096))
        self.asks("unproved", cryptmark.repair_header, path)
        self.assertIn("rebuilt", cryptmark.repair_header(path, PASSPHRASE, uuid=created["uuid"]))
        self.assertIn("good", cryptmark.repair_header(path))
        self.assertEqual(self.size_of(path), created["size"])

    def test_a_veracrypt_header_is_kept_put_back_and_mended(self):
        path, kept = self.vera(1 << 20), self.folder / "kept"
        cryptmark.backup_header(path, kept, format="veracrypt")
        with path.open("r+b") as file:
            file.write(bytes(65536))
        said = cryptmark.repair_header(path, PASSPHRASE, **VERA)
        self.assertIn("rewritten from its copy", said)
        self.assertIn("rewritten", cryptmark.restore_header(path, kept, PASSPHRASE, **VERA))


class Keys(VolumeCase):
    def opens(self, path, *secrets, **options):
        """Which of the secrets open the volume."""
        return [secret for secret in secrets if self.tries(path, secret, **options)]

    def tries(self, path, secret, **options):
        try:
            cryptmark.open(path, secret, **options).close()
        except cryptmark.WrongSecret:
            return False
        return True

    def test_secrets_are_added_changed_and_removed(self):
        for version in (1, 2):
            path = self.luks(version, name=f"{version}.img")
            header = self.folder / f"{version}.header"
            shutil.copy(path, header)
            for apart in ({}, {"header": header}):
                changes = {"iter_time": 1, **apart}
                slot = cryptmark.add_key(path, PASSPHRASE, b"two", new_key_slot=4, **changes)
                self.assertEqual(slot, 4)
                self.assertEqual(cryptmark.add_key(path, b"two", PASSPHRASE, **changes), 1)
                slot = cryptmark.change_key(path, "two", "three", key_slot=4, **changes)
                self.assertEqual(slot, 2 if version == 1 else 4)
                opened = self.opens(path, PASSPHRASE, "two", "three", **apart)
                self.assertEqual(opened, [PASSPHRASE, "three"])
                self.assertEqual(cryptmark.remove_key(path, "three", key_slot=1, **apart), 1)
                self.assertEqual(cryptmark.remove_key(path, PASSPHRASE, **apart), 0)
                self.assertEqual(self.opens(path, PASSPHRASE, "three", **apart), ["three"])
                self.refused(cryptmark.Protected, cryptmark.remove_key, path, "three", **apart)
                cryptmark.remove_key(path, "three", last_too=True, **apart)
                self.assertEqual(self.opens(path, "three", **apart), [])

    def test_what_is_refused_changes_nothing(self):
        path = self.luks()
        before = path.read_bytes()
        add, change, remove = cryptmark.add_key, cryptmark.change_key, cryptmark.remove_key
        for error, use, secrets, options in (
            (cryptmark.WrongSecret, add, ("wrong", "new"), {}),
            (cryptmark.BadInput, add, (PASSPHRASE, ""), {}),
            (cryptmark.BadInput, add, (PASSPHRASE, "new"), {"new_key_slot": 99, "iter_time": 1}),
            (cryptmark.BadInput, add, (PASSPHRASE, "new"), {"pbkdf": "md5", "iter_time": 1}),
            (cryptmark.BadInput, add, (PASSPHRASE, "new"), {"pbkdf": "argon2id", "iter_time": 1}),
            (cryptmark.BadInput, remove, (PASSPHRASE,), {"key_slot": 5}),
            (ValueError, add, (), {"new_passphrase": "new"}),
            (ValueError, add, (PASSPHRASE,), {}),
            (TypeError, add, (PASSPHRASE, "new"), {"iter_time": "long"}),
        ):
            self.refused(error, use, path, *secrets, **options)
        self.refused(cryptmark.NotFound, change, self.folder / "missing", PASSPHRASE, "new")
        with cryptmark.open(path, PASSPHRASE, mode="r+b"):
            self.refused(cryptmark.Protected, change, path, PASSPHRASE, "new")
        self.assertEqual(path.read_bytes(), before)
