"""Volumes in file objects, which may do anything."""

import contextlib
import io
import os
import shutil
import tempfile
import unittest

import cryptmark
from support import PASSPHRASE, PLAIN, SIZE, Strange, VolumeCase


class Minimal:
    """A file object with the least of methods."""

    def __init__(self, content):
        self._file = io.BytesIO(content)

    def readinto(self, buffer):
        return self._file.readinto(memoryview(buffer)[:700])

    def seek(self, offset, whence=0):
        self._file.seek(offset, whence)

    def tell(self):
        return self._file.tell()


class Equal(VolumeCase):
    """What is the same for a path and for a file object."""

    def test_a_volume_is_that_of_its_path(self):
        for version in (1, 2):
            path = self.luks(version, name=f"{version}.img")
            with cryptmark.open(path, PASSPHRASE, mode="r+b") as volume:
                volume.write(os.urandom(volume.size))
            content = path.read_bytes()
            with cryptmark.open(path, PASSPHRASE) as volume:
                expected, info = volume.read(), volume.info
            objects = [io.BytesIO(content), Minimal(content), path.open("rb"), path.open("rb", 0)]
            objects.append(tempfile.SpooledTemporaryFile())
            objects[-1].write(content)
            for file in objects:
                with cryptmark.open(file, PASSPHRASE) as volume:
                    self.assertEqual((volume.info, volume.read()), (info, expected))
                    self.assertEqual(volume.pread(9999, 777), expected[777 : 777 + 9999])
                self.assertEqual(cryptmark.info(file), cryptmark.info(path))
                self.assertEqual(cryptmark.info(file, f"luks{version}"), cryptmark.info(path))
                # It stays the caller's.
                file.seek(0)
                if hasattr(file, "close"):
                    file.close()

    def test_an_object_has_one_volume_at_a_time(self):
        content = self.luks(2).read_bytes()
        file = io.BytesIO(content)
        for mode in ("rb", "r+b"):
            with cryptmark.open(file, PASSPHRASE, mode=mode):
                # Both would move its position.
                for other in ("rb", "r+b"):
                    with self.assertRaises(cryptmark.Protected) as refused:
                        cryptmark.open(file, PASSPHRASE, mode=other)
                    self.assertIn("Close", refused.exception.remedy)
                with self.assertRaises(cryptmark.Protected):
                    cryptmark.info(file)
                with cryptmark.open(io.BytesIO(content), PASSPHRASE) as another:
                    self.assertEqual(len(another.read(512)), 512)
            # Free again, also after an opening that failed.
            with self.assertRaises(cryptmark.WrongSecret):
                cryptmark.open(file, "wrong")
            self.assertEqual(cryptmark.info(file)["format"], "luks2")
        self.assertEqual(file.getvalue(), content)

    def test_a_file_of_the_system_is_held_as_by_its_path(self):
        path = self.luks(2)
        files = contextlib.ExitStack()
        self.addCleanup(files.close)

        def by_object():
            return files.enter_context(path.open("r+b"))

        both = {"by path": lambda: path, "by object": by_object}
        for first, one in both.items():
            for second, other in both.items():
                with self.subTest(first=first, second=second):
                    with cryptmark.open(one(), PASSPHRASE, mode="r+b"):
                        with self.assertRaises(cryptmark.Protected):
                            cryptmark.open(other(), PASSPHRASE, mode="r+b")
                        # Readers are let in, as they are by a path.
                        with cryptmark.open(other(), PASSPHRASE) as volume:
                            volume.read(512)
                    with cryptmark.open(other(), PASSPHRASE, mode="r+b"):
                        pass

    def test_a_header_beside_a_file_of_the_system_is_found(self):
        path = self.luks(2)
        with cryptmark.open(path, PASSPHRASE) as volume:
            expected = volume.read()
        # As of a volume that is being encrypted or decrypted in place.
        shutil.copy(path, f"{path}.cryptmark-header")
        with path.open("r+b") as file:
            file.write(bytes(1 << 20))
            file.flush()
            with cryptmark.open(file, PASSPHRASE) as volume:
                self.assertEqual(volume.read(), expected)
            with self.assertRaises(cryptmark.Protected) as refused:
                cryptmark.open(file, PASSPHRASE, mode="r+b")
            self.assertIn("reencrypt", str(refused.exception))

    def test_writes_go_through(self):
        path, _ = self.plain(SIZE)
        for buffering in (0, -1):
            with path.open("r+b", buffering) as file:
                data = os.urandom(70_001)
                with cryptmark.open(file, mode="r+b", **PLAIN) as volume:
                    self.assertEqual((volume.name, volume.mode), (str(path), "rb+"))
                    self.assertEqual(volume.pwrite(data, 3), len(data))
                    volume.flush()
                    with cryptmark.open(path, **PLAIN) as other:
                        self.assertEqual(other.pread(len(data), 3), data)
                self.assertFalse(file.closed)
        file = Strange()
        with cryptmark.open(file, mode="r+b", **PLAIN) as volume:
            self.assertIsNone(volume.name)
            file.calls.clear()
            volume.write(bytes(512))
            self.assertEqual(file.calls, ["write"])
            volume.flush()
            self.assertEqual(file.calls, ["write", "flush"])

    def test_a_volume_for_reading_is_not_written(self):
        file = Strange()
        with cryptmark.open(file, **PLAIN) as volume:
            self.assertRaises(io.UnsupportedOperation, volume.write, b"1")
            self.assertRaises(cryptmark.BadInput, volume._handle.pwrite, b"1", 0)
            volume.flush()
        self.assertLessEqual(set(file.calls), {"read"})

    def test_a_header_may_be_a_file_object(self):
        path = self.luks()
        whole = path.read_bytes()
        header, data = self.folder / "header", self.folder / "data"
        header.write_bytes(whole[: 2 << 20])
        data.write_bytes(bytes(2 << 20) + whole[2 << 20 :])
        with cryptmark.open(path, PASSPHRASE) as volume:
            expected = volume.read()
        for file in (data, io.BytesIO(data.read_bytes())):
            for apart in (header, header.open("rb")):
                with cryptmark.open(file, PASSPHRASE, header=apart, mode="r+b") as volume:
                    self.assertEqual(volume.read(), expected)
                if apart is not header:
                    apart.close()
        with self.assertRaises(cryptmark.BadInput):
            cryptmark.open(data, PASSPHRASE, header=io.BytesIO())

    def test_a_volume_is_the_file_object_of_another(self):
        outer = io.BytesIO(bytes(SIZE))
        with cryptmark.open(outer, mode="r+b", **PLAIN) as one:
            with cryptmark.open(one, "another", format="plain", mode="r+b", allow=["unknown"]) as two:
                two.pwrite(b"twice encrypted", 1000)
                self.assertEqual(two.pread(15, 1000), b"twice encrypted")
            self.assertFalse(one.closed)

    def test_sizes_are_rounded_down_as_of_files(self):
        for size in (0, 1, 511, 512, 700, 1025):
            path, _ = self.plain(size)
            outcomes = []
            for file in (path, io.BytesIO(bytes(size))):
                try:
                    with cryptmark.open(file, **PLAIN) as volume:
                        outcomes.append((volume.size, volume.read()))
                except cryptmark.Error as error:
                    outcomes.append((type(error), str(error)))
            self.assertEqual(outcomes[0], outcomes[1])

    def test_errors_are_those_of_paths(self):
        path, _ = self.plain()
        luks = self.luks()
        for arguments in ({}, {"format": "luks1"}, {"format": "luks2"}):
            for name, secret in ((path, PASSPHRASE), (luks, "wrong"), (luks, None)):
                errors = []
                for file in (name, io.BytesIO(name.read_bytes())):
                    with self.assertRaises(cryptmark.Error) as raised:
                        cryptmark.open(file, secret, **arguments)
                    errors.append((type(raised.exception), str(raised.exception)))
                self.assertEqual(errors[0], errors[1])


class Unusable(VolumeCase):
    """Objects that are refused before anything is done with them."""

    def refused(self, words, file, **arguments):
        with self.assertRaisesRegex(cryptmark.BadInput, words) as raised:
            cryptmark.open(file, **{**PLAIN, **arguments})
        self.assertTrue(raised.exception.remedy)

    def test_what_cannot_seek(self):
        read, write = os.pipe()
        with open(read, "rb") as pipe, open(write, "wb"):
            self.refused("cannot seek", pipe)

        class Stream:
            def read(self, size):
                return bytes(size)

        self.refused("cannot seek", Stream())
        with self.assertRaisesRegex(cryptmark.BadInput, "cannot seek"):
            cryptmark.info(Stream())
        self.refused("cannot seek", io.BytesIO(), header=Stream())

    def test_what_cannot_be_read_or_written(self):
        path, _ = self.plain()
        with path.open("rb") as file:
            self.refused("cannot be written", file, mode="r+b")
        self.refused("cannot be written", Minimal(bytes(SIZE)), mode="r+b")
        with (self.folder / "new").open("wb") as file:
            self.refused("cannot be read", file, mode="r+b")

    def test_what_has_text(self):
        self.refused("has text", io.StringIO("text"))
        path, _ = self.plain()
        with path.open() as file:
            self.refused("has text", file)

    def test_objects_that_are_paths_too(self):
        path, _ = self.plain()

        class Local(type(path)):
            def read(self):
                raise AssertionError

        with cryptmark.open(Local(path), **PLAIN) as volume:
            self.assertEqual(volume.name, str(path))


class Failing(VolumeCase):
    """Objects that do not do what they should."""

    def changed(self, mode="r+b", file=None, **methods):
        """An open volume, in an object with other methods from now on."""
        file = Strange() if file is None else file
        volume = cryptmark.open(file, mode=mode, **PLAIN)

        def close():
            for name in methods:
                delattr(file, name)
            with contextlib.suppress(cryptmark.Failed):
                volume.close()

        self.addCleanup(close)
        vars(file).update(methods)
        return volume, file

    def failed(self, cause, use, *arguments):
        with self.assertRaises(cryptmark.Failed) as raised:
            use(*arguments)
        self.assertIsInstance(raised.exception.__cause__, cause)
        self.assertIn("file object", raised.exception.remedy)
        self.assertIn(type(raised.exception.__cause__).__name__, str(raised.exception))
        return raised.exception

    def test_an_exception_is_the_cause(self):
        class Own(Exception):
            pass

        mine = Own("of the test")

        def fail(*_):
            raise mine

        for name in ("read", "seek"):
            volume, _ = self.changed(**{name: fail})
            self.assertIs(self.failed(Own, volume.pread, 9, 9).__cause__, mine)
            self.assertIs(self.failed(Own, volume.read).__cause__, mine)
        for name in ("read", "seek", "write"):
            volume, file = self.changed(**{name: fail})
            self.failed(Own, volume.pwrite, b"part of a sector", 3)
            self.assertEqual(file.getvalue(), bytes(SIZE))
        volume, _ = self.changed(flush=fail)
        self.failed(Own, volume.flush)
        for name in ("seek", "tell"):
            file = Strange()
            setattr(file, name, fail)
            self.failed(Own, lambda file=file: cryptmark.open(file, **PLAIN))
        file = Strange()
        file.read = fail
        self.failed(Own, cryptmark.info, file)
        self.failed(Own, lambda: cryptmark.open(file, PASSPHRASE))

    def test_the_number_of_an_error_is_kept(self):
        def fail(*_):
            raise OSError(28, "full")

        volume, _ = self.changed(write=fail)
        self.assertEqual(self.failed(OSError, volume.write, bytes(512)).errno, 28)

    def test_short_reads_and_writes_are_continued(self):
        file = Strange(os.urandom(SIZE))
        volume, _ = self.changed(file=file)
        expected = volume.pread(SIZE, 0)
        file.read = lambda size: io.BytesIO.read(file, min(size, 1000))
        self.assertEqual(volume.pread(SIZE, 0), expected)
        file.write = lambda data: io.BytesIO.write(file, data[:333])
        volume.pwrite(expected[5:9000], 6)
        del file.read, file.write
        self.assertEqual(volume.pread(SIZE, 0), expected[:6] + expected[5:9000] + expected[9001:])

    def test_an_object_that_ends_too_early(self):
        volume, file = self.changed()
        file.truncate(SIZE // 2)
        volume.pread(SIZE // 2, 0)
        with self.assertRaisesRegex(cryptmark.Failed, "now shorter") as raised:
            volume.read()
        self.assertIsNone(raised.exception.__cause__)
        # It would need what is not there.
        self.assertRaises(cryptmark.Failed, volume.pwrite, b"part", SIZE - 9)
        self.assertEqual(len(file.getvalue()), SIZE // 2)

        class Liar(io.BytesIO):
            def seek(self, offset, whence=0):
                return super().seek(offset, whence) if whence == 0 else super().seek(1 << 40)

        with cryptmark.open(Liar(bytes(SIZE)), **PLAIN) as volume:
            self.assertEqual(volume.size, 1 << 40)
            self.assertRaises(cryptmark.Failed, volume.pread, 1, 1 << 30)

    def test_impossible_answers(self):
        for answer in (b"12" * SIZE, "text", None, 7, bytearray(512), [], memoryview(bytes(512))):
            volume, file = self.changed(read=lambda size, answer=answer: answer)
            self.failed((TypeError, OSError), volume.pread, 512, 0)
            self.failed((TypeError, OSError), volume.pwrite, b"1", 0)
            self.assertEqual(file.getvalue(), bytes(SIZE))
        for answer in (-1, 0, 513, 1 << 70, None, "7", 1.5):
            volume, _ = self.changed(write=lambda data, answer=answer: answer)
            self.failed((TypeError, OSError), volume.write, bytes(512))
        for answer in (-1, 1, 1 << 70, "7", 1.5, b""):
            volume, file = self.changed(seek=lambda offset, answer=answer: answer)
            self.failed((TypeError, OSError), volume.pread, 512, 0)
            self.failed((TypeError, OSError), volume.pwrite, bytes(512), 0)
            self.assertEqual(file.getvalue(), bytes(SIZE))
        volume, file = self.changed()
        file.seek = lambda offset: io.BytesIO.seek(file, 700) and None
        self.failed(OSError, volume.pwrite, bytes(512), 512)
        del file.seek
        for answer in (-1, 1 << 63, 1 << 70, None, "7", 1.5):
            file = Strange()
            file.tell = lambda answer=answer: answer
            kinds = (TypeError, ValueError, OverflowError)
            self.failed(kinds, lambda file=file: cryptmark.open(file, **PLAIN))
        for answer in (-1, 701, 1 << 70, None, "7"):
            file = Minimal(bytes(SIZE))
            volume = cryptmark.open(file, **PLAIN)
            file.readinto = lambda buffer, answer=answer: answer
            self.failed((TypeError, OSError, OverflowError), volume.pread, 512, 0)
        file.readinto = lambda buffer: buffer.clear() or 512
        self.failed(OSError, volume.pread, 512, 0)

    def test_an_object_that_is_closed_meanwhile(self):
        volume, file = self.changed()
        file.close()
        self.failed(ValueError, volume.pread, 512, 0)
        self.failed(ValueError, volume.pwrite, bytes(512), 0)
        self.assertRaises(ValueError, cryptmark.open, file, **PLAIN)

    def test_a_failure_in_one_copy_of_the_header_is_that_of_a_disk(self):
        content = self.luks(2).read_bytes()
        file = Strange(content)
        broken = [range(4096)]

        def read(size):
            if any(file.tell() in places for places in broken):
                raise OSError(5, "bad sector")
            return io.BytesIO.read(file, size)

        file.read = read
        with cryptmark.open(file, PASSPHRASE, mode="r+b") as volume:
            self.assertEqual(volume.info["header"]["copies"], "only the second counts")
        broken.append(range(4096, len(content)))
        with self.assertRaises(cryptmark.Error):
            cryptmark.open(file, PASSPHRASE, mode="r+b")
        self.assertEqual(file.getvalue(), content)
        self.assertNotIn("write", file.calls)


if __name__ == "__main__":
    unittest.main()
