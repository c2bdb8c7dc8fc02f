"""Volumes in file objects, which may do anything."""

import contextlib
import io
import itertools
import os
import shutil
import tempfile

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
                for use in (
                    lambda: cryptmark.open(file, PASSPHRASE),
                    lambda: cryptmark.open(file, PASSPHRASE, mode="r+b"),
                    lambda: cryptmark.info(file),
                ):
                    self.assertIn("Close", self.refused(cryptmark.Protected, use).remedy)
                with cryptmark.open(io.BytesIO(content), PASSPHRASE) as another:
                    self.assertEqual(len(another.read(512)), 512)
            # Free again, also after an opening that failed.
            self.refused(cryptmark.WrongSecret, cryptmark.open, file, "wrong")
            self.assertEqual(cryptmark.info(file)["format"], "luks2")
        self.assertEqual(file.getvalue(), content)

    def test_a_file_of_the_system_is_held_as_by_its_path(self):
        path = self.luks(2)
        files = contextlib.ExitStack()
        self.addCleanup(files.close)
        both = (lambda: path, lambda: files.enter_context(path.open("r+b")))
        write = {"passphrase": PASSPHRASE, "mode": "r+b"}
        for first, second in itertools.product(both, both):
            with cryptmark.open(first(), **write):
                self.refused(cryptmark.Protected, cryptmark.open, second(), **write)
                # Readers are let in, as they are by a path.
                with cryptmark.open(second(), PASSPHRASE) as volume:
                    volume.read(512)
            cryptmark.open(second(), **write).close()

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
            error = self.refused(cryptmark.Protected, cryptmark.open, file, PASSPHRASE, mode="r+b")
            self.assertIn("reencrypt", str(error))

    def test_writes_go_through(self):
        path = self.plain()
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

    def test_a_header_may_be_in_another_file(self):
        path = self.luks()
        whole = path.read_bytes()
        header, data = self.folder / "header", self.folder / "data"
        header.write_bytes(whole[: 2 << 20])
        data.write_bytes(bytes(2 << 20) + whole[2 << 20 :])
        with cryptmark.open(path, PASSPHRASE) as volume:
            expected = volume.read()
        with header.open("rb") as opened:
            sources = (data, io.BytesIO(data.read_bytes()))
            for file, apart, mode in itertools.product(sources, (header, opened), ("rb", "r+b")):
                with cryptmark.open(file, PASSPHRASE, header=apart, mode=mode) as volume:
                    self.assertEqual(volume.read(), expected)
        self.refused(cryptmark.BadInput, cryptmark.open, data, PASSPHRASE, header=io.BytesIO())

    def test_a_volume_is_the_file_object_of_another(self):
        outer = io.BytesIO(bytes(SIZE))
        with cryptmark.open(outer, mode="r+b", **PLAIN) as one:
            with cryptmark.open(one, "another", format="plain", mode="r+b", allow=["unknown"]) as two:
                two.pwrite(b"twice encrypted", 1000)
                self.assertEqual(two.pread(15, 1000), b"twice encrypted")
            self.assertFalse(one.closed)

    def outcome(self, file, *secret, **arguments):
        """What comes of opening and reading a volume."""
        try:
            with cryptmark.open(file, *secret, **arguments) as volume:
                return volume.size, volume.read()
        except cryptmark.Error as error:
            return type(error), str(error)

    def test_sizes_are_rounded_down_as_of_files(self):
        for size in (0, 1, 511, 512, 700, 1025):
            by_path = self.outcome(self.plain(size), **PLAIN)
            self.assertEqual(by_path, self.outcome(io.BytesIO(bytes(size)), **PLAIN))

    def test_errors_are_those_of_paths(self):
        plain, luks = self.plain(), self.luks()
        formats = ({}, {"format": "luks1"}, {"format": "luks2"})
        wrong = ((plain, PASSPHRASE), (luks, "wrong"), (luks, None))
        for arguments, (path, secret) in itertools.product(formats, wrong):
            by_path = self.outcome(path, secret, **arguments)
            self.assertTrue(issubclass(by_path[0], cryptmark.Error))
            content = io.BytesIO(path.read_bytes())
            self.assertEqual(by_path, self.outcome(content, secret, **arguments))


class Unusable(VolumeCase):
    """Objects that are refused before anything is done with them."""

    def test_what_cannot_be_used(self):
        class Stream:
            def read(self, size):
                return bytes(size)

        with contextlib.ExitStack() as opened:
            read, write = os.pipe()
            pipe = opened.enter_context(open(read, "rb"))
            opened.enter_context(open(write, "wb"))
            path = self.plain()
            reading = opened.enter_context(path.open("rb"))
            text = opened.enter_context(path.open())
            writing = opened.enter_context((self.folder / "new").open("wb"))
            for said, file, arguments in (
                ("cannot seek", pipe, {}),
                ("cannot seek", Stream(), {}),
                ("cannot seek", io.BytesIO(), {"header": Stream()}),
                ("cannot be written", reading, {"mode": "r+b"}),
                ("cannot be written", Minimal(bytes(SIZE)), {"mode": "r+b"}),
                ("cannot be read", writing, {"mode": "r+b"}),
                ("has text", io.StringIO("text"), {}),
                ("has text", text, {}),
            ):
                arguments = {**PLAIN, **arguments}
                error = self.refused(cryptmark.BadInput, cryptmark.open, file, **arguments)
                self.assertIn(said, str(error))
                self.assertTrue(error.remedy)
        self.assertIn("cannot seek", str(self.refused(cryptmark.BadInput, cryptmark.info, Stream())))

    def test_objects_that_are_paths_too(self):
        path = self.plain()

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
        error = self.refused(cryptmark.Failed, use, *arguments)
        self.assertIsInstance(error.__cause__, cause)
        self.assertIn("file object", error.remedy)
        self.assertIn(type(error.__cause__).__name__, str(error))
        return error

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
        self.refused(cryptmark.Error, cryptmark.open, file, PASSPHRASE, mode="r+b")
        self.assertEqual(file.getvalue(), content)
        self.assertNotIn("write", file.calls)
