"""What a config can name: every public part of the package, and the makers of `sources`.

Names and arguments are read off the package itself (`proxgt.__all__`, `tasks.TASKS`,
`inspect.signature`), so that a new regularizer, estimator or method needs no line here.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import proxgt as pg
from proxgt import data, tasks
from proxgt.config import sources
from proxgt.tasks.registry import options_of
from proxgt.tasks.sharded import sharded_task

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_PARTS: dict[str, type] = {
    "regularizers": pg.Regularizer,
    "consensus": pg.Consensus,
    "estimators": pg.Estimator,
    "compressors": pg.Compressor,
    "methods": pg.Method,
}
KINDS = ("problems", *_PARTS, "networks", "losses", "datasets")


@dataclass(frozen=True)
class Entry:
    """A maker, the arguments a config may give it, and what is said of it."""

    make: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    about: str

    @classmethod
    def of(cls, make: Callable[..., Any]) -> Entry:
        """The entry of a function or class."""
        return cls(make, _parameters(make), _first_line(make))

    @property
    def arguments(self) -> str:
        """As `batch, period, refresh=None`, without what other tables of a config say."""
        shown = [
            name if p.default is p.empty else f"{name}={_default(p.default)}"
            for name, p in self.parameters.items()
            if name not in ("nodes", "regularizer")
        ]
        return ", ".join(shown)


@functools.cache
def catalog(kind: str) -> dict[str, Entry]:
    """All entries of a kind by name."""
    if kind == "problems":
        return {name: _task(name) for name in tasks.TASKS} | {
            "empirical": Entry.of(sources.empirical),
            "population": Entry.of(sources.population),
        }
    if kind == "networks":
        named = {
            name: Entry.of(getattr(pg.Network, name))
            for name, member in vars(pg.Network).items()
            if isinstance(member, classmethod) and name != "from_weights"
        }
        named |= {
            "file": Entry.of(sources.network_file),
            "weights": Entry.of(sources.network_weights),
        }
        return {name: _with_links(entry) for name, entry in named.items()}
    if kind == "losses":
        losses = {name: getattr(tasks, name) for name in tasks.__all__ if name.endswith("Loss")}
        return {n.removesuffix("Loss").lower(): Entry.of(loss) for n, loss in losses.items()}
    if kind == "datasets":
        return {name: Entry(data.load, {}, "") for name in data.DATASETS}
    public = {name: getattr(pg, name) for name in pg.__all__}
    return {n: Entry.of(part) for n, part in public.items() if _makes(part, _PARTS[kind])}


def kind_of(hint: Any) -> str | None:
    """The kind of part that a type hint asks for, or that a class is of."""
    if not isinstance(hint, type):
        return None
    if is_several(hint):
        return "consensus"
    return next((kind for kind, base in _PARTS.items() if issubclass(hint, base)), None)


def is_several(hint: Any) -> bool:
    """Whether this is a named tuple of consensus operators, which some methods need."""
    if not (isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")):
        return False
    return all(kind_of(field) == "consensus" for field in get_type_hints(hint).values())


def with_shards(name: Any) -> Entry | None:
    """The entry of a problem whose data come from shards; None where it takes no data."""
    if name == "empirical":
        return Entry.of(sources.sharded)
    if name not in tasks.TASKS or "dataset" not in options_of(name):
        return None
    task: Any = tasks.TASKS[name]  # of data, so it makes an empirical risk
    parameters = {k: p for k, p in _parameters(task).items() if k != "data"}
    own = {k: p for k, p in _parameters(sharded_task).items() if k in ("shards", "nodes")}
    return Entry(functools.partial(sharded_task, task), own | parameters, _first_line(task))


def _with_links(entry: Entry) -> Entry:
    """The entry of a network, whose links may fail and nodes may pause."""

    def make(link_failure: float = 0.0, outages: list[dict] = [], **given: Any) -> pg.Network:  # noqa: B006
        network = entry.make(**given)
        return sources.unreliable(network, link_failure, outages)

    return Entry(make, dict(entry.parameters) | dict(_parameters(make)), entry.about)


def is_reference(value: Any) -> bool:
    """Whether a value reads `module:name`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def load_reference(reference: str) -> Any:
    """The object that `module:name` names; ValueError where there is none."""
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a user's module may raise anything
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"cannot import {module_name!r}: {type(error).__name__}: {reason}"
        ) from error
    if not hasattr(module, name):
        raise ValueError(f"module {module_name!r} has no {name!r}")
    return getattr(module, name)


# Reading signatures ------------------------------------------------------------------------


def _task(name: str) -> Entry:
    # An option of both, such as `seed`, is from_dataset's.
    both = _parameters(tasks.TASKS[name]) | _parameters(tasks.from_dataset)
    parameters = {option: both[option] for option in options_of(name)}
    make = functools.partial(tasks.build, name)
    return Entry(make, parameters, _first_line(tasks.TASKS[name]))


def _parameters(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    if is_several(make):
        hints, defaults = get_type_hints(make), getattr(make, "_field_defaults")  # noqa: B009
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return {
            name: inspect.Parameter(
                name, kind, default=defaults.get(name, inspect.Parameter.empty), annotation=hint
            )
            for name, hint in hints.items()
        }
    signature = _signature(make)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: p
        for name, p in signature.parameters.items()
        if p.kind not in kinds and p.annotation != tuple[()]  # the consensus of one machine
    }


def _signature(make: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(make, eval_str=True)
    except (NameError, SyntaxError):  # hints that only a type checker can resolve
        return inspect.signature(make)


def _makes(part: Any, base: type) -> bool:
    if is_several(part):
        return base is pg.Consensus
    if isinstance(part, type):
        return issubclass(part, base) and not inspect.isabstract(part)
    if not inspect.isfunction(part):
        return False
    made = _signature(part).return_annotation
    return isinstance(made, type) and issubclass(made, base)


def _first_line(make: Any) -> str:
    return (inspect.getdoc(make) or "").partition("\n")[0]


def _default(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
