"""A volume is a file of its bytes."""

import array
import copy
import io
import os
import pickle

import cryptmark
from support import PASSPHRASE, PLAIN, SIZE, VolumeCase


class Files(VolumeCase):
    def setUp(self):
        super().setUp()
        self.path = self.plain()
        self.volume = self.open()
        self.addCleanup(self.volume.close)
        self.content = bytearray(os.urandom(SIZE))
        self.assertEqual(self.volume.pwrite(self.content, 0), SIZE)

    def open(self, mode="r+b"):
        return cryptmark.open(self.path, mode=mode, **PLAIN)

    def test_bytes_are_read_as_from_a_file(self):
        volume, content = self.volume, self.content
        self.assertTrue(volume.readable() and volume.writable() and volume.seekable())
        self.assertEqual(volume.read(10), content[:10])
        self.assertEqual(volume.tell(), 10)
        self.assertEqual(volume.seek(-5, os.SEEK_END), SIZE - 5)
        self.assertEqual(volume.read(), content[-5:])
        self.assertEqual((volume.read(), volume.read(1), volume.readall()), (b"", b"", b""))
        self.assertEqual(volume.seek(3), 3)
        self.assertEqual(volume.seek(4, os.SEEK_CUR), 7)
        self.assertEqual(volume.read(None), content[7:])
        self.assertEqual(volume.pread(700_000, 400_001), content[400_001:])
        self.assertEqual(volume.pread(3, SIZE + 9), b"")
        volume.seek(511)
        for target in (bytearray(600_000), array.array("i", bytes(4000)), memoryview(bytearray(9))):
            at = volume.tell()
            length = memoryview(target).nbytes
            self.assertEqual(volume.readinto(target), min(length, SIZE - at))
            self.assertEqual(bytes(memoryview(target).cast("B")), content[at : at + length])
        self.assertEqual(volume.readinto(bytearray()), 0)

    def test_bytes_are_written_as_to_a_file(self):
        volume = self.volume
        self.assertEqual(volume.write(array.array("i", [1, 2])), 8)
        self.assertEqual(volume.write(b""), 0)
        volume.seek(5)
        self.assertEqual(volume.write(bytearray(os.urandom(600_001))), 600_001)
        volume.seek(-3, os.SEEK_END)
        self.assertEqual(volume.write(memoryview(b"12345")), 3)
        self.assertEqual(volume.pread(9, SIZE - 3), b"123")
        # A buffered writer would try forever.
        self.assertEqual(self.refused(OSError, volume.write, b"6").errno, 28)
        volume.flush()
        with self.open("rb") as other:
            self.assertEqual(other.read(), volume.pread(SIZE, 0))

    def test_buffers_of_the_standard_library_go_on_top(self):
        with io.BufferedReader(self.open("rb"), 5000) as reader:
            self.assertEqual(reader.read(7), self.content[:7])
            self.assertEqual(reader.peek(1)[:1], self.content[7:8])
            self.assertEqual(reader.read(), self.content[7:])
        self.volume.close()
        with io.BufferedRandom(self.open()) as both:
            both.seek(70_000)
            both.write(b"line 1\nline 2\n")
            both.seek(70_000)
            self.assertEqual(both.readline(), b"line 1\n")
        with io.TextIOWrapper(io.BufferedReader(self.open("rb")), "latin-1", newline="") as text:
            self.assertEqual(len(text.read()), SIZE)
        raw = self.open()
        writer = io.BufferedWriter(raw)
        writer.seek(SIZE - 1)
        writer.write(b"ab")
        self.assertRaises(OSError, writer.flush)
        self.assertRaises(OSError, writer.close)
        self.assertTrue(raw.closed)

    def test_a_closed_volume_is_a_closed_file(self):
        volume = self.volume
        volume.close()
        volume.close()
        for name, *arguments in (
            ("read",),
            ("read", 1),
            ("readall",),
            ("readinto", bytearray(1)),
            ("write", b"1"),
            ("pread", 1, 0),
            ("pwrite", b"1", 0),
            ("seek", 0),
            ("tell",),
            ("flush",),
            ("readable",),
            ("__enter__",),
        ):
            self.refused(ValueError, getattr(volume, name), *arguments)
        for name in ("size", "info"):
            self.refused(ValueError, getattr, volume, name)
        self.refused(ValueError, list, volume)

    def test_a_volume_for_reading_is_not_written(self):
        before = self.path.read_bytes()
        with self.open("rb") as volume:
            self.assertFalse(volume.writable())
            for use in (lambda: volume.write(b"1"), lambda: volume.pwrite(b"1", 0)):
                self.assertRaises(io.UnsupportedOperation, use)
            volume.flush()
        self.assertEqual(self.path.read_bytes(), before)

    def test_what_files_cannot_do_is_refused_as_by_files(self):
        for use in (self.volume.fileno, self.volume.truncate):
            self.assertRaises(io.UnsupportedOperation, use)
        self.assertFalse(self.volume.isatty())
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            self.assertRaises(TypeError, use, self.volume)

    def test_bad_targets_are_refused(self):
        volume = self.volume
        for target in (
            b"read-only",
            memoryview(bytearray(9)).toreadonly(),
            memoryview(bytearray(9))[::2],
            "text",
            None,
            3,
            [1],
        ):
            self.assertRaises(TypeError, volume.readinto, target)
        for data in (memoryview(b"123456")[::2], "text", None, 3, [1]):
            self.assertRaises(TypeError, volume.write, data)
            self.assertRaises(TypeError, volume.pwrite, data, 0)
        released = memoryview(bytearray(3))
        released.release()
        self.assertRaises(ValueError, volume.readinto, released)
        self.assertEqual(volume.tell(), 0)

    def test_impossible_places_are_refused(self):
        volume = self.volume
        for big in (1 << 64, 1 << 200, -1, -(1 << 64)):
            self.assertRaises((ValueError, OverflowError), volume.pread, 1, big)
            self.assertRaises((ValueError, OverflowError), volume.pwrite, b"1", big)
            self.assertRaises((ValueError, OverflowError), volume.seek, big)
        for n in (-1, 1 << 64):
            self.assertRaises((ValueError, OverflowError), volume.pread, n, 0)
        for place in (SIZE, (1 << 64) - 1, (1 << 63) - 1):
            self.assertEqual(volume.pread((1 << 64) - 1, place), b"")
            self.assertRaises(cryptmark.BadInput, volume.pwrite, b"1", place)
        self.assertRaises(cryptmark.BadInput, volume.pwrite, b"12", SIZE - 1)
        self.assertRaises(ValueError, volume.seek, 0, 3)
        self.assertRaises(ValueError, volume.seek, (1 << 63) - 1, 2)
        self.assertRaises(ValueError, volume.seek, -SIZE - 1, 2)
        for wrong in (1.5, "1", None, b"1"):
            self.assertRaises(TypeError, volume.pread, wrong, 0)
            self.assertRaises(TypeError, volume.pread, 1, wrong)
            self.assertRaises(TypeError, volume.seek, wrong)
        for wrong in (1.5, "1", b"1"):
            self.assertRaises(TypeError, volume.read, wrong)
        volume.seek((1 << 63) - 1)
        self.assertEqual(volume.read(5), b"")
        self.assertRaises(OSError, volume.write, b"1")
        self.assertEqual(volume.pread(SIZE, 0), self.content)


class Random(VolumeCase):
    def test_any_bytes_are_those_of_a_byte_array(self):
        with cryptmark.open(self.luks(), PASSPHRASE, mode="r+b") as volume:
            model = bytearray(volume.size)
            volume.pwrite(model, 0)
            with io.BufferedRandom(volume) as file:
                for number in range(300):
                    at = int.from_bytes(os.urandom(3), "big") % len(model)
                    data = os.urandom(number * 7 % 3000)[: len(model) - at]
                    file.seek(at)
                    file.write(data)
                    model[at : at + len(data)] = data
                file.seek(0)
                self.assertEqual(file.read(), model)
