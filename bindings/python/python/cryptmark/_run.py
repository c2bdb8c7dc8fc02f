"""`run`, which measures a plan, and its `Run`."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, Iterable, List, Optional

from . import _native
from ._call import call
from ._source import Path


class Run:
    """The record of a measurement, which `cryptmark.run` makes."""

    def __init__(self, record: str, rows: List[Dict[str, Any]]) -> None:
        self._record = record
        self._rows = rows

    def json(self) -> str:
        """The record as the program stores it. `cryptmark report` reads it from a file."""
        return self._record

    def to_dict(self) -> Dict[str, Any]:
        """The record as dictionaries and lists."""
        record: Dict[str, Any] = json.loads(self._record)
        return record

    def rows(self) -> List[Dict[str, Any]]:
        """One dictionary for each trial, with the columns of `cryptmark report --format csv`."""
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`. It needs pandas."""
        import pandas

        return pandas.DataFrame(self._rows)

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`. It needs pyarrow."""
        import pyarrow

        return pyarrow.Table.from_pylist(self._rows)

    def __repr__(self) -> str:
        record = self.to_dict()
        return f"<cryptmark.Run plan={record['plan']!r} trials={len(self._rows)}>"


Run.__module__ = "cryptmark"


def run(
    plan: str = "quick",
    *,
    at: Optional[Path] = None,
    size: Optional[int] = None,
    repetitions: Optional[int] = None,
    trial_seconds: Optional[float] = None,
    systems: Iterable[str] = (),
    ciphers: Iterable[str] = (),
    seed: Optional[int] = None,
    progress: Optional[Callable[[str, int, int], Any]] = None,
) -> Run:
    """Measures a plan, and returns its record. Nothing is stored or printed.

    `plan` is the name of a shipped plan, or the path of a file that ends in `.toml`. Devices are
    measured by a file in the directory `at`, which is gone afterwards, and in memory without `at`.
    `size` is in bytes. `systems` and `ciphers` are named as on the command line.

    `progress` is called between measurements with what is done next, and with how much is done and
    how much there is. The run ends if it raises an exception, and by Ctrl-C.
    """
    if progress is not None and not callable(progress):
        raise TypeError("progress must be callable")
    at = None if at is None else os.fsdecode(at)
    record, rows = call(_native.run, locals())
    return Run(record, rows)
