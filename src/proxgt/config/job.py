"""A run as a TOML file: one table each for problem, regularizer, network, method and run.

A table names a part of the package by `name` and gives its arguments by their own names, so
that a config reads like the Python call:

    [method]                          pg.ProxGT_SR_E(
    name = "ProxGT_SR_E"
    batch = 8                             batch=8,
    period = 20                           period=20,
    step_size = 0.3                       step_size=0.3,
    [method.consensus]
    name = "Chebyshev"                    consensus=pg.Chebyshev(
    rounds = 4                                rounds=4))

A comparison has [compare] and an array [[methods]], each with a `label` if need be.

`name`, and any argument that is a function, may be a `module:name` of the user's own. Files
and modules are found from the config's directory, or from a top-level `directory`.
"""

from __future__ import annotations

import copy
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

import proxgt as pg
from proxgt.config.errors import ConfigError, blame, nearest
from proxgt.config.parts import Parts
from proxgt.methods.base import prepared

TABLES = ("problem", "regularizer", "network", "method", "run", "compare")
_SETTING = ("problem", "network")
_RUN = (*_SETTING, "method")


@dataclass(frozen=True)
class Job:
    """What a config describes, ready for `solve(problem, network, method, **settings)`."""

    problem: pg.Problem
    network: pg.Network
    method: pg.Method
    settings: dict[str, Any]
    checkpoint: bool
    progress: bool
    config: dict[str, Any]  # with its defaults written out


@dataclass(frozen=True)
class Setting:
    """A problem and a network that fit, apart from any method."""

    problem: pg.Problem
    network: pg.Network
    parts: Parts
    config: dict[str, Any]  # with its defaults written out


def read(path: Path) -> dict[str, Any]:
    """The config in a file, with `directory` set to where its files and modules are."""
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError("", (error.strerror or str(error)).lower()) from error
    except UnicodeDecodeError as error:
        raise ConfigError("", "not a text file in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("", f"not valid TOML: {error}") from error
    base = config.get("directory", ".")
    if not isinstance(base, str):
        raise ConfigError("directory", f"must be a string, got {base!r}")
    return config | {"directory": str((path.resolve().parent / base).resolve())}


def override(config: dict[str, Any], assignment: str) -> str:
    """Apply `table.key=value`, or `table={...}`, to a config in place; the path that was set.

    The value is TOML, or, where it is not, a string as it stands.
    """
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError("", f"must read table.key=value, got {assignment!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        value = text.strip()
        if value[:1] in ("{", "[", '"', "'"):  # what no plain string begins with
            raise ConfigError(path.strip(), f"not valid TOML, {value}: {error}") from error
    table = config
    for depth, key in enumerate(keys[:-1], start=1):
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(".".join(keys[:depth]), "not a table, so nothing can be set in it")
    table[keys[-1]] = value
    return path.strip()


def dump(config: Mapping[str, Any]) -> str:
    """The config as TOML."""
    return tomli_w.dumps(config)


def build(config: Mapping[str, Any]) -> Job:
    """The parts that a config describes, each checked alone and then together."""
    # Looking into shards loads them: over ranks, `solve` checks when each has its own.
    lazy = engine_of(config) == "mpi" and "shards" in config.get("problem", ())
    setting = build_setting(config, _RUN, look=not lazy)
    problem, network, config = setting.problem, setting.network, setting.config
    method = setting.parts.make(config, "method")
    run = setting.parts.run(config.setdefault("run", {}))
    with blame("method", config["method"]):
        method = prepared(method, network, None if lazy else problem, run["tolerance"])
        if not lazy:
            method.check(problem, network)
    checkpoint, progress = run.pop("checkpoint"), run.pop("progress")
    return Job(problem, network, method, run, checkpoint, progress, config)


def build_setting(
    config: Mapping[str, Any], needed: tuple[str, ...] = _SETTING, look: bool = True
) -> Setting:
    """The problem and the network of a config, checked together where `look`."""
    config = copy.deepcopy(dict(config))
    _check_tables(config, needed)
    parts = Parts(Path(config.get("directory", ".")))
    network = parts.make(config, "network")
    given: dict[str, Any] = {"nodes": network.nodes}
    if "regularizer" in config:
        given["regularizer"] = parts.make(config, "regularizer")
    problem = parts.make(config, "problem", given)
    _check_together(problem, network, config, look)
    return Setting(problem, network, parts, config)


def engine_of(config: Mapping[str, Any]) -> Any:
    """What a config says of the engine, checked or not."""
    run = config.get("run", {})
    return run.get("engine", "local") if isinstance(run, dict) else None


@contextmanager
def importable(directory: str) -> Iterator[None]:
    """Let modules in the config's directory, and in the working directory, be imported."""
    before = list(sys.path)
    sys.path[:0] = [directory, os.getcwd()]
    try:
        yield
    finally:
        sys.path[:] = before


def _check_tables(config: Mapping[str, Any], needed: tuple[str, ...]) -> None:
    for name, table in config.items():
        if name == "directory":
            continue
        if name == "methods":
            if "method" in needed:
                raise ConfigError(name, "for `proxgt compare`: a run has one [method]")
            if not isinstance(table, list) or not all(isinstance(one, dict) for one in table):
                raise ConfigError(name, f"must be an array of tables, got {table!r}")
            continue
        if not isinstance(table, dict):
            raise ConfigError(name, f"must be a table, got {table!r}")
        if name not in TABLES:
            raise ConfigError(name, f"unknown table{nearest(name, TABLES)}")
    for name in TABLES:
        if name not in config and name in needed:
            raise ConfigError(name, f"missing table: add [{name}]")


def _check_together(
    problem: pg.Problem, network: pg.Network, config: Mapping[str, Any], look: bool
) -> None:
    """What `solve` would refuse later, said now and of the table at fault."""
    if problem.nodes != network.nodes:
        message = f"has {problem.nodes} nodes and the network {network.nodes}; they must agree"
        raise ConfigError("problem", message)
    with blame("problem", config["problem"]):
        spec = problem.spec()
        spec.vector(problem.x0, name="x0")
        if look:
            problem.check_loss(spec)
    with blame("regularizer", config.get("regularizer", ())):
        problem.check_regularizer(spec)
