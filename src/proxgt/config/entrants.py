"""What configs say of a comparison: its terms, its methods, and what differs between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import proxgt as pg
from proxgt.comparison.contest import Contest
from proxgt.config.catalog import catalog, is_reference
from proxgt.config.errors import ConfigError, blame
from proxgt.config.job import Setting
from proxgt.config.parts import Terms
from proxgt.fingerprint import difference, fingerprint

_SHARED = ("problem", "regularizer", "network")
_MEASURED = ("metric_step", "metric_at", "dtype")


@dataclass(frozen=True)
class Entrant:
    """A method of a comparison, where it stands, and its table."""

    label: str
    method: pg.Method
    path: str
    table: dict[str, Any]


def entrants(setting: Setting, terms: Terms) -> list[Entrant]:
    """The methods of one config of a comparison: [method], or [[methods]]."""
    config = setting.config
    if ("method" in config) == ("methods" in config):
        raise ConfigError("methods", "give either [[methods]] or [method]")
    if "method" in config:
        tables = {"method": config["method"]}
    else:
        tables = {f"methods.{k}": table for k, table in enumerate(config["methods"])}
    found = []
    for path, table in tables.items():
        label = table.pop("label", None)
        if label is not None and not (isinstance(label, str) and label):
            raise ConfigError(f"{path}.label", f"must be a string, got {label!r}")
        _give_step_size(table, terms)
        made = setting.parts.made(table, path)
        names = [other.get("name") for other in tables.values()]
        label = label or (table["name"] if names.count(table["name"]) == 1 else "")
        if not label:
            message = f"missing key: {names.count(table['name'])} methods are {table['name']}"
            raise ConfigError(f"{path}.label", message)
        found.append(Entrant(label, made, path, table))
        if [one.label for one in found].count(label) > 1:
            raise ConfigError(f"{path}.label", f"there are two {label!r}; labels must differ")
    return found


def told_apart(found: list[tuple[Path, list[Entrant]]]) -> list[Entrant]:
    """The methods of all configs; those of one label are told apart by their files."""
    labels = [one.label for _, mine in found for one in mine]
    every = [
        dataclasses.replace(one, label=f"{one.label} ({file.stem})")
        if labels.count(one.label) > 1
        else one
        for file, mine in found
        for one in mine
    ]
    for k, one in enumerate(every):
        if one.label in [other.label for other in every[:k]]:
            raise ConfigError(f"{one.path}.label", f"there are two {one.label!r}; they must differ")
    return every


def check_entrants(found: list[Entrant], contest: Contest) -> None:
    """Refuse, before any time is spent, a method that cannot run or not within the budget."""
    for one in found:
        with blame(one.path, one.table):
            contest.check(one.method)


def terms_of(setting: Setting) -> tuple[Terms, dict[str, Any]]:
    """The [compare] table, and of [run] what measures methods alike."""
    config = setting.config
    terms = setting.parts.terms(config.setdefault("compare", {}))
    run = setting.parts.run(config.setdefault("run", {}))
    if run["engine"] != "local":
        raise ConfigError("run.engine", f"must be 'local' to compare, got {run['engine']!r}")
    options = {name: run[name] for name in _MEASURED}
    config["run"] = {name: value for name, value in options.items() if value is not None}
    return terms, options


def differing(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> str:
    """What differs in problem or network between two configs of a comparison, or nothing."""
    says = f"is {{}} in {names[0]} and {{}} in {names[1]}"
    for table in (*_SHARED, "compare", "run"):
        first, second = (fingerprint(config.get(table, {}), table) for config in (one, other))
        changed = difference(first, second, says)
        if changed:
            return changed
    directories = [config.get("directory", ".") for config in (one, other)]
    if directories[0] == directories[1]:
        return ""
    local = (_local(config, config.get("directory", ".")) for config in (one, other))
    name = next(filter(None, local), "")
    return f"{name!r} belongs to another directory in {names[1]}: set `directory`" if name else ""


def _local(tree: Any, directory: str) -> str:
    """A file or a module of the config's own directory that a config names, if any."""
    if isinstance(tree, Mapping):
        tree = [part for key, part in tree.items() if key != "directory"]
    if isinstance(tree, list):
        return next(filter(None, (_local(part, directory) for part in tree)), "")
    if not isinstance(tree, str):
        return ""
    return tree if is_reference(tree) or (Path(directory) / tree).exists() else ""


def _give_step_size(table: dict[str, Any], terms: Terms) -> None:
    """A method that is to be tuned need not have a step size."""
    entry = catalog("methods").get(str(table.get("name")))
    if terms.step_sizes and entry is not None and "step_size" in entry.parameters:
        table.setdefault("step_size", terms.step_sizes[0])
