"""What the commands share: configs with their flags, errors that name them, directories."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from proxgt import config
from proxgt.config.errors import ConfigError

Flags = dict[str, str]  # dotted path -> the flag that set it


class UsageError(Exception):
    """What was asked cannot be done; the message says why in one line."""


def console() -> Console:
    """Standard output; the tables hold brackets that are not markup."""
    return Console(markup=False, highlight=False, emoji=False)


@contextmanager
def naming(source: str, flags: Flags) -> Iterator[None]:
    """Say of an error in a config the file that it is in, or the flag that set it."""
    try:
        yield
    except ConfigError as error:
        raise UsageError(f"{flag_of(error.path, flags) or source}: {error}") from error


def flag_of(path: str, flags: Flags) -> str | None:
    """The flag that set this path, or a table that it is in."""
    return next((flag for set_, flag in flags.items() if f"{path}.".startswith(f"{set_}.")), None)


def read(path: Path, args: argparse.Namespace, flags: Flags) -> dict[str, Any]:
    """The config with the flags applied to it."""
    given = config.read(path)
    for assignment in args.set:
        try:
            flags[config.override(given, assignment)] = "--set"
        except ConfigError as error:
            raise UsageError(f"--set: {error}") from error
    if getattr(args, "engine", None) is not None:
        flags[config.override(given, f"run.engine={json.dumps(args.engine)}")] = "--engine"
    return given


def write_config(table: dict[str, Any], out: Path) -> None:
    """Whole or not at all, since --resume goes by it."""
    scratch = out / "config.toml.tmp"
    scratch.write_text(config.dump(table), encoding="utf-8")
    os.replace(scratch, out / "config.toml")


def numbered(stem: str) -> tuple[Path | None, Path]:
    """The last there is of stem, stem-2, stem-3, ..., and the first that is free."""
    names = [stem, *(f"{stem}-{k}" for k in range(2, 10_000))]
    free = next(k for k, name in enumerate(names) if not os.path.lexists(name))
    return (Path(names[free - 1]) if free else None), Path(names[free])


def setting_of(args: argparse.Namespace) -> config.Setting:
    """The problem and network of a command's config."""
    flags: Flags = {}
    with naming(str(args.config), flags):
        given = read(args.config, args, flags)
        with config.importable(given["directory"]):
            return config.build_setting(given)


def new_directory(out: Path | None, stem: str) -> Path:
    """Where a command that keeps no earlier results writes."""
    if out is None:
        return numbered(stem)[1]
    if os.path.lexists(out) and not out.is_dir():
        raise UsageError(f"--out {out}: not a directory")
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"--out {out}: not empty; choose another directory")
    return out


def say_saved(out: Path) -> None:
    """Where files are, and which."""
    names = sorted(f"{file.name}{os.sep * file.is_dir()}" for file in out.iterdir())
    console().print(f"Saved in {out}{os.sep}", soft_wrap=True)
    console().print(f"  {'  '.join(names)}")
