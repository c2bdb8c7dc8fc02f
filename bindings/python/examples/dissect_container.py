"""Opens encrypted images in dissect.target by the engine of cryptmark.

    target-shell --plugin-path examples …

Import this module before `Target.open`, and register passphrases in dissect's keychain, with the
provider "cryptmark" or with none.
"""

from pathlib import Path

from dissect.target import container
from dissect.target.helpers import keychain

import cryptmark


class CryptmarkContainer(container.Container):
    """The decrypted content of an encrypted image."""

    __type__ = "cryptmark"

    def __init__(self, path, *args, **kwargs):
        volume = unlocked(path)
        super().__init__(volume, volume.size, *args, **kwargs)
        self.read, self.readinto = volume.read, volume.readinto
        self.seek, self.tell = volume.seek, volume.tell

    @staticmethod
    def detect_path(path, original):
        try:
            return bool(cryptmark.info(path))
        except cryptmark.Error:
            return False

    @staticmethod
    def _detect_fh(fh, original):
        # The engine opens files by their paths.
        return False

    def close(self):
        self.fh.close()


def unlocked(path: Path) -> cryptmark.Volume:
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
            return cryptmark.open(path, **{names[key.key_type]: key.value})
        except cryptmark.WrongSecret:
            continue
    raise cryptmark.WrongSecret(f"no key of the keychain opens {path}")


container.CONTAINERS.insert(0, CryptmarkContainer)
