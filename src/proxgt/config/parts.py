"""Tables of a config as parts of a run: names to makers, keys to arguments."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import proxgt as pg
from proxgt import checks
from proxgt.comparison.contest import seeds_of
from proxgt.config import hints
from proxgt.config.catalog import (
    Entry,
    catalog,
    is_reference,
    is_several,
    kind_of,
    load_reference,
    with_shards,
)
from proxgt.config.errors import ConfigError, blame, nearest
from proxgt.methods.base import STEPS
from proxgt.settings import Settings

Parameters = Mapping[str, inspect.Parameter]

_KINDS = {
    "problem": "problems",
    "regularizer": "regularizers",
    "network": "networks",
    "method": "methods",
}
# A key that says by itself what a table without a name is.
_TELLING = {
    "problem": {"sampler": "population", "data": "empirical", "shards": "empirical"},
    "regularizer": {"parts": "Blocks"},
    "network": {"file": "file", "W": "weights"},
}
_RESULTS = {"problem": pg.Problem, "network": pg.Network, "method": pg.Method}


@dataclasses.dataclass(frozen=True)
class Terms:
    """The [compare] table: what every method may spend, and what is asked of it.

    `step_sizes` has every method tuned on this grid first; `target` is a metric to reach.
    """

    budget: dict[str, float]
    seeds: int | list[int] = 3
    records: int = 50
    target: float | None = None
    step_sizes: list[float] | None = None

    def __post_init__(self) -> None:
        seeds_of(self.seeds)
        checks.positive_int("records", self.records)
        if self.target is not None:
            checks.positive_number("target", self.target)
        if self.step_sizes is not None:
            if not self.step_sizes:
                raise ValueError("step_sizes must hold at least one step size, got none")
            for step_size in self.step_sizes:
                checks.positive_number("step_sizes", step_size)


class Parts:
    """Makes the parts of a config, and writes their defaults into its tables."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make(
        self, config: dict[str, Any], table: str, given: Mapping[str, Any] | None = None
    ) -> Any:
        """The part that a table describes; `given` are arguments from other tables."""
        return self.made(config[table], table, given)

    def made(
        self, content: dict[str, Any], path: str, given: Mapping[str, Any] | None = None
    ) -> Any:
        """The part that the table at `path` describes, of the kind of the path's first key."""
        table = "method" if path.startswith("methods.") else path
        made = self._part(content, path, _KINDS[table], given or {})
        expected = _RESULTS.get(table, object)
        if not isinstance(made, expected):
            raise ConfigError(f"{path}.name", f"must make a {expected.__name__}, got {made!r}")
        return made

    def run(self, table: dict[str, Any]) -> dict[str, Any]:
        """The [run] table: the settings of `solve`, and two of the command line's own."""
        options = inspect.signature(pg.solve, eval_str=True).parameters
        settings = [field.name for field in dataclasses.fields(Settings)]
        known = {name: options[name] for name in settings} | {
            "steps": options["steps"].replace(annotation=int, default=STEPS),
            "checkpoint": options["checkpoint"].replace(annotation=bool, default=True),
            "progress": options["progress"].replace(default=sys.stderr.isatty()),
        }
        run = {name: p.default for name, p in known.items()}
        run |= self._arguments(table, "run", known)
        with blame("run", known):
            Settings(**{name: run[name] for name in settings})
        for name in [*settings, "checkpoint"]:
            _write_default(table, name, run[name])
        return run

    def terms(self, table: dict[str, Any]) -> Terms:
        """The [compare] table."""
        known = inspect.signature(Terms, eval_str=True).parameters
        arguments = self._arguments(table, "compare", known)
        if "budget" not in arguments:
            raise ConfigError("compare.budget", "missing key, such as { samples = 10_000 }")
        with blame("compare", known):
            terms = Terms(**arguments)
        for name in ("seeds", "records"):
            _write_default(table, name, getattr(terms, name))
        return terms

    def _part(self, table: dict[str, Any], path: str, kind: str, given: Mapping[str, Any]) -> Any:
        entry = self._entry(table, path, kind)
        known = dict(entry.parameters)
        if "regularizer" in given and "regularizer" not in known:
            raise ConfigError("regularizer", f"the problem {table['name']!r} takes none")
        given = {name: value for name, value in given.items() if name in known}
        known.pop("regularizer", None)  # has a table of its own
        if "n" not in known or "nodes" not in table:
            return self._made(entry, table, path, known, given)
        table["n"] = table.pop("nodes")
        try:
            return self._made(entry, table, path, known, given)
        except ConfigError as error:  # named as it was written
            if error.path == f"{path}.n":
                raise ConfigError(f"{path}.nodes", error.message) from error
            raise

    def _made(
        self,
        entry: Entry,
        table: dict[str, Any],
        path: str,
        known: Parameters,
        given: Mapping[str, Any],
    ) -> Any:
        """What an entry makes of a table, whose defaults are written out."""
        arguments = self._arguments(table, path, known)
        for name in (n for n in known if n not in arguments and n not in given):
            default = known[name].default
            if default is inspect.Parameter.empty:
                raise ConfigError(f"{path}.{name}", f"missing key, which {table['name']} needs")
            _write_default(table, name, default)
        with blame(path, arguments):
            return entry.make(**{**given, **arguments})

    def _entry(self, table: dict[str, Any], path: str, kind: str) -> Entry:
        """The maker that a table names, or implies by a telling key."""
        telling = _TELLING.get(path, {})
        name = table.get("name", next((telling[key] for key in telling if key in table), None))
        shown = f"; `proxgt list {kind}` shows what there is"
        if name is None:
            raise ConfigError(f"{path}.name", f"missing key{shown}")
        if not isinstance(name, str):
            raise ConfigError(f"{path}.name", f"must be a string, got {name!r}")
        table["name"] = name
        if is_reference(name):
            found = self._reference(name, f"{path}.name")
            with blame(f"{path}.name"):
                return Entry.of(found) if callable(found) else Entry(lambda: found, {}, "")
        known = catalog(kind)
        if path == "problem" and "shards" in table:
            found = with_shards(name)
            if found is None and name in known:
                raise ConfigError(f"{path}.shards", f"{name} takes no data")
            if found is not None:
                return found
        if name not in known:
            hint = nearest(name, known) or shown
            raise ConfigError(f"{path}.name", f"unknown name {name!r}{hint}")
        return known[name]

    def _arguments(self, table: dict[str, Any], path: str, known: Parameters) -> dict[str, Any]:
        """The keys of a table as arguments."""
        arguments = {}
        for key, value in list(table.items()):
            if key == "name" and path not in ("run", "compare"):
                continue
            if key not in known:
                hint = nearest(key, known) or f"; known here: {', '.join(known) or 'none'}"
                raise ConfigError(f"{path}.{key}", f"unknown key{hint}")
            hint, where = known[key].annotation, f"{path}.{key}"
            kind = _part_kind(hint, key)
            if kind and isinstance(value, str) and not is_reference(value):
                table[key] = value = {"name": value}
            if kind and isinstance(value, dict):
                _name_several(value, hint)
                arguments[key] = self._part(value, where, kind, {})
            elif where == "regularizer.parts":
                arguments[key] = self._blocks(value, where)
            else:
                arguments[key] = self._value(value, hint, where)
        return arguments

    def _blocks(self, tree: Any, path: str) -> Any:
        """Regularizers in nested tables and arrays, such as [regularizer.parts.w]."""
        if isinstance(tree, list):
            return [self._blocks(part, f"{path}.{k}") for k, part in enumerate(tree)]
        if not isinstance(tree, dict):
            raise ConfigError(path, f"must be a table with a name, got {tree!r}")
        if "name" in tree:
            return self._part(tree, path, "regularizers", {})
        return {key: self._blocks(part, f"{path}.{key}") for key, part in tree.items()}

    def _value(self, value: Any, hint: Any, path: str) -> Any:
        """A TOML value as what the type hint asks for."""
        options = hints.options_of(hint)
        if is_reference(value) and str not in options:
            return self._reference(value, path)
        if isinstance(value, str) and Path in options:
            file = self._directory / value
            if path == "problem.shards":
                return file
            # Where a name would do too, only a suffix or an existing file makes it a path.
            if str not in options or file.suffix or file.is_file():
                if not file.is_file():
                    raise ConfigError(path, f"no such file: {file}")
                return file
        if not hints.fits(value, hint):
            raise ConfigError(path, f"must be {hints.wanted(hint)}, got {value!r}")
        return hints.converted(value, hint)

    def _reference(self, reference: str, path: str) -> Any:
        with blame(path):
            return load_reference(reference)


def _part_kind(hint: Any, key: str) -> str | None:
    """The kind of part that an argument is, if it is one."""
    kinds = (kind_of(option) for option in hints.options_of(hint))
    loss = "losses" if key == "loss" and hints.is_function(hint) else None
    return next(filter(None, kinds), loss)


def _name_several(table: dict[str, Any], hint: Any) -> None:
    """Name a table of several consensus operators, which its keys tell."""
    for option in hints.options_of(hint):
        if is_several(option) and table.keys() & set(option._fields):
            table.setdefault("name", option.__name__)


def _write_default(table: dict[str, Any], key: str, value: Any) -> None:
    """Write a default out, so that a saved config still says it when defaults change."""
    if isinstance(value, (bool, int, float, str)):
        table.setdefault(key, value)
    elif kind_of(type(value)):
        if dataclasses.is_dataclass(value):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        else:
            fields = value._asdict() if is_several(type(value)) else {}
        written: dict[str, Any] = {"name": type(value).__name__}
        for name, field in fields.items():
            _write_default(written, name, field)
        table.setdefault(key, written)
