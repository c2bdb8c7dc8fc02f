"""Key slots that are added, changed and removed."""

import shutil
import unittest

import cryptmark
from support import PASSPHRASE, VolumeCase


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
            for where, apart in ((path, {}), (path, {"header": header})):
                changes = {"iter_time": 1, **apart}
                slot = cryptmark.add_key(where, PASSPHRASE, b"two", new_key_slot=4, **changes)
                self.assertEqual(slot, 4)
                self.assertEqual(cryptmark.add_key(where, b"two", PASSPHRASE, **changes), 1)
                slot = cryptmark.change_key(where, "two", "three", key_slot=4, **changes)
                self.assertEqual(slot, 2 if version == 1 else 4)
                opened = self.opens(path, PASSPHRASE, "two", "three", **apart)
                self.assertEqual(opened, [PASSPHRASE, "three"])
                self.assertEqual(cryptmark.remove_key(where, "three", key_slot=1, **apart), 1)
                self.assertEqual(cryptmark.remove_key(where, PASSPHRASE, **apart), 0)
                opened = self.opens(path, PASSPHRASE, "three", **apart)
                self.assertEqual(opened, ["three"])
                with self.assertRaises(cryptmark.Protected):
                    cryptmark.remove_key(where, "three", **apart)
                cryptmark.remove_key(where, "three", last_too=True, **apart)
                self.assertEqual(self.opens(path, "three", **apart), [])

    def test_what_is_refused_changes_nothing(self):
        path = self.luks()
        before = path.read_bytes()
        with self.assertRaises(cryptmark.WrongSecret):
            cryptmark.add_key(path, "wrong", "new")
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.add_key(path, PASSPHRASE, "")
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.add_key(path, PASSPHRASE, "new", new_key_slot=99, iter_time=1)
        for pbkdf in ("md5", "argon2id"):
            with self.assertRaises(cryptmark.BadInput):
                cryptmark.add_key(path, PASSPHRASE, "new", pbkdf=pbkdf, iter_time=1)
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.remove_key(path, PASSPHRASE, key_slot=5)
        with self.assertRaises(cryptmark.NotFound):
            cryptmark.change_key(self.folder / "missing", PASSPHRASE, "new")
        with self.assertRaises(ValueError):
            cryptmark.add_key(path, new_passphrase="new")
        with self.assertRaises(ValueError):
            cryptmark.add_key(path, PASSPHRASE)
        with self.assertRaises(TypeError):
            cryptmark.add_key(path, PASSPHRASE, "new", iter_time="long")
        with cryptmark.open(path, PASSPHRASE, mode="r+b"):
            with self.assertRaises(cryptmark.Protected):
                cryptmark.change_key(path, PASSPHRASE, "new")
        self.assertEqual(path.read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
