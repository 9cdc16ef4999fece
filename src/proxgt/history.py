"""The curves of a run: one row a record, one column a quantity."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proxgt import checks


class Row(NamedTuple):
    """One record.

    Samples and gradients are per node, bits are what a node sends to each neighbour, seconds
    exclude measuring and compiling; those not spent in communication are computation.
    """

    step: int
    samples: float
    gradients: float
    rounds: int
    bits: float
    objective: float
    stationarity: float
    consensus: float
    metric: float
    seconds: float
    communication_seconds: float = 0.0


_COUNTS = ("step", "rounds")  # the columns that are whole numbers


class History:
    """A table of `Row`s: `history["samples"]` is a NumPy array, `history[-1]` a row."""

    columns = Row._fields

    def __init__(self, rows: list[Row] | None = None) -> None:
        self._rows = list(rows or [])

    def append(self, row: Row) -> None:
        """Add a record."""
        self._rows.append(row)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, int):
            return self._rows[key]
        checks.one_of("history column", key, self.columns)
        kind = np.int64 if key in _COUNTS else np.float64
        return np.array([getattr(row, key) for row in self._rows], dtype=kind)

    def __repr__(self) -> str:
        last = f", last={self._rows[-1]}" if self._rows else ""
        return f"History(records={len(self)}{last})"

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` (needs pandas: `pip install proxgt[pandas]`)."""
        import pandas as pd

        return pd.DataFrame(self._rows, columns=pd.Index(self.columns))

    def save(self, path: str | Path) -> None:
        """Write a .csv or .json file; numbers are written so that they read back exactly."""
        path = Path(path)
        suffix = checks.one_of("history file suffix", path.suffix, (".csv", ".json"))
        path.write_text(self.to_csv() if suffix == ".csv" else json.dumps(self.to_lists()))

    def to_csv(self, begin: int = 0) -> str:
        """The table as CSV text; or, with `begin`, its rows from there, to be appended."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if begin == 0:
            writer.writerow(self.columns)
        writer.writerows([repr(v) for v in row] for row in self._rows[begin:])
        return out.getvalue()

    def to_lists(self) -> dict[str, list[Any]]:
        """The table as plain columns."""
        return {name: [getattr(row, name) for row in self._rows] for name in self.columns}

    @classmethod
    def from_lists(cls, columns: dict[str, list[Any]]) -> History:
        """The table that `to_lists` gave."""
        return cls([Row(*row) for row in zip(*(columns[c] for c in cls.columns), strict=True)])

    @classmethod
    def load(cls, path: str | Path, records: int | None = None) -> History:
        """Read what `save` wrote, or its first `records` rows."""
        text = Path(path).read_text()
        if Path(path).suffix == ".json":
            return cls.from_lists(json.loads(text))
        header, *rows = csv.reader(io.StringIO(text))
        return cls([Row(*map(_read, header, row)) for row in rows[:records]])


def _read(column: str, text: str) -> Any:
    return int(text) if column in _COUNTS else float(text)
