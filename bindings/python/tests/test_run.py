"""Plans of the lab, measured from Python."""

import json

import cryptmark
from support import VolumeCase, interrupted, needs, turns_during

SHORT = {"size": 4 << 20, "repetitions": 3, "trial_seconds": 0.005, "seed": 1}


def ciphers(**changes):
    return cryptmark.run("ciphers", ciphers=["aes"], systems=["builtin"], **{**SHORT, **changes})


class Runs(VolumeCase):
    def test_a_plan_gives_a_record(self):
        told = []
        run = ciphers(progress=lambda *step: told.append(step))
        self.assertTrue(told)
        for what, done, total in told:
            self.assertIsInstance(what, str)
            self.assertLessEqual(done, total)
        record = run.to_dict()
        self.assertEqual(record, json.loads(run.json()))
        self.assertEqual((record["plan"], record["partial"], record["seed"]), ("ciphers", False, 1))
        rows = run.rows()
        self.assertEqual(len(rows), len(record["trials"]))
        self.assertGreater(len(rows), 1)
        self.assertTrue(all(row["plan"] == "ciphers" for row in rows))
        self.assertTrue(any("aes" in str(row["cipher"]) for row in rows))
        self.assertIn("plan='ciphers'", repr(run))
        rows[0].clear()
        self.assertTrue(run.rows()[0])

    def test_devices_are_measured_by_a_file_in_a_directory(self):
        changes = {**SHORT, "size": 32 << 20, "systems": ["builtin"], "ciphers": ["aes"]}
        run = cryptmark.run("quick", at=self.folder, **changes)
        self.assertFalse(run.to_dict()["partial"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_lives_of_drives_are_a_plan_like_others(self):
        plan = self.folder / "lives.toml"
        plan.write_text(
            'title = "lives"\ndevices = ["mlc-128g"]\npolicies = ["pass"]\nyears = 0.01\n'
            'daily = "1GB"\nciphers = ["aes-xts-plain64"]\ncpu = { aes = "1500MB/s" }\n'
        )
        run = cryptmark.run(str(plan), seed=1)
        self.assertFalse(run.to_dict()["partial"])
        self.assertTrue(run.rows())
        with self.assertRaisesRegex(cryptmark.BadInput, "cannot be chosen for lives"):
            cryptmark.run(str(plan), size=1 << 20)

    def test_rows_are_tables_of_other_packages(self):
        for module, method in (("pandas", "to_pandas"), ("pyarrow", "to_arrow")):
            needs(module)
            run = ciphers()
            table = getattr(run, method)()
            self.assertEqual(len(table), len(run.rows()))
            self.assertEqual({str(plan) for plan in table["plan"]}, {"ciphers"})

    def test_wrong_plans_and_changes_are_refused(self):
        file = self.folder / "file"
        file.write_bytes(b"kept")
        for arguments in (
            {"plan": "no-such-plan"},
            {"plan": "ciphers", "repetitions": 0},
            {"plan": "ciphers", "ciphers": ["no-such-cipher"]},
            {"plan": "ciphers", "systems": ["no-such-system"]},
            {"plan": "quick", "at": file},
            {"plan": "kdf", "at": self.folder},
            {"plan": "kdf", "seed": 1},
            {"plan": "ciphers", "at": self.folder},
            {"plan": "file-systems"},
        ):
            refused = self.refused(cryptmark.BadInput, cryptmark.run, **arguments)
            self.assertTrue(refused.remedy, arguments)
        self.assertEqual(file.read_bytes(), b"kept")
        for arguments in (
            {"plan": 3},
            {"progress": 3},
            {"ciphers": "aes"},
            {"systems": [3]},
            {"repetitions": "3"},
            {"at": 3},
        ):
            self.assertRaises(TypeError, cryptmark.run, **arguments)
        for arguments in ({"size": -1}, {"repetitions": 1 << 40}):
            self.assertRaises((ValueError, OverflowError), cryptmark.run, **arguments)

    def test_a_listener_ends_a_run(self):
        self.refused(ZeroDivisionError, ciphers, progress=lambda *_: 1 // 0)

    def test_ctrl_c_ends_a_run(self):
        script = "print('measuring', flush=True)\ncryptmark.run('ciphers', repetitions=1000)"
        self.assertEqual(interrupted(script, after=1)[0], 7)

    def test_other_threads_run_during_a_run(self):
        self.assertGreater(turns_during(lambda: ciphers(repetitions=10)), 3)
