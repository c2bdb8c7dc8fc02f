"""Opens encrypted images in dissect.target by the engine of cryptmark.

    target-shell --plugin-path examples …

Import this module before `Target.open`, and register passphrases in dissect's keychain, with the
provider "cryptmark" or with none. Images inside other images and containers are opened by dissect's
file objects.
"""

from pathlib import Path

from dissect.target import container
from dissect.target.helpers import keychain

import cryptmark


class CryptmarkContainer(container.Container):
    """The decrypted content of an encrypted image."""

    __type__ = "cryptmark"

    def __init__(self, item, *args, **kwargs):
        volume = unlocked(item if hasattr(item, "read") or is_of_host(item) else item.open("rb"))
        super().__init__(volume, volume.size, *args, **kwargs)
        self.read, self.readinto = volume.read, volume.readinto
        self.seek, self.tell = volume.seek, volume.tell

    @staticmethod
    def detect_path(path, original):
        return is_of_host(path) and is_encrypted(path)

    @staticmethod
    def _detect_fh(fh, original):
        return not isinstance(original, list) and is_encrypted(fh)

    def close(self):
        self.fh.close()


def is_of_host(path):
    """Whether the path is of this machine, and not inside an image."""
    return type(path) is type(Path())


def is_encrypted(file):
    """Whether a header of an encrypted volume is in the path or file object."""
    try:
        return bool(cryptmark.info(file))
    except cryptmark.Error:
        return False


def unlocked(file) -> cryptmark.Volume:
    """The volume, opened by the first key that fits."""
    keys = keychain.get_keys_for_provider("cryptmark") + keychain.get_keys_without_provider()
    names = {
        keychain.KeyType.PASSPHRASE: "passphrase",
        keychain.KeyType.RECOVERY_KEY: "passphrase",
        keychain.KeyType.FILE: "key_file",
        keychain.KeyType.RAW: "volume_key",
    }
    for key in keys:
        try:
            return cryptmark.open(file, **{names[key.key_type]: key.value})
        except cryptmark.WrongSecret:
            continue
    raise cryptmark.WrongSecret(f"no key of the keychain opens {file}")


container.CONTAINERS.insert(0, CryptmarkContainer)
