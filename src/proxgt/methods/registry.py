"""Every method by name: what the table says of it, as a mapping and as text for people.

for name, entry in pg.methods.registry.items():
    print(name, entry.make, entry.source, entry.problem, entry.graph, entry.work.rounds)

pg.methods.registry["GT_SARAH"].source          who published it
pg.methods.registry.describe("GT_SARAH")        all that is known of it, as plain text
pg.methods.registry.rows("smooth")              a family as lines of a table
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from proxgt import checks
from proxgt.methods.entries import ENTRIES
from proxgt.methods.entries.entry import FAMILIES, Entry

_PROBLEM = {
    "composite": "any",
    "smooth": "none",
    "set": "indicator of a set",
    "compact set": "indicator of a compact set",
}
_GRAPH = {
    "digraph": "any digraph",
    "doubly stochastic": "doubly stochastic W",
    "symmetric": "symmetric W",
    "undirected": "undirected",
    "one node": "one node",
}


class Row(NamedTuple):
    """One line of the table of methods, as text."""

    method: str
    source: str
    h: str
    risk: str
    network: str
    rounds: str
    samples: str
    evaluations: str


HEADINGS = Row("method", "published by", "h", "risk", "network", "rounds", "samples", "evaluations")
_IN_README = ("method", "source", "h", "network", "rounds")


class Registry(Mapping[str, Entry]):
    """All methods by their public names, in the order of their families."""

    families = FAMILIES  # key -> title

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry of {len(self)} methods: {', '.join(self)}"

    def rows(self, family: str | None = None) -> list[Row]:
        """The table of methods, or of those of one family; costs are per node and step."""
        if family is not None:
            checks.one_of("family", family, FAMILIES)
        return [row(entry) for entry in self.values() if family in (None, entry.family)]

    def describe(self, name: str) -> str:
        """All that is known of a method, as plain text."""
        entry = self[checks.one_of("method", name, self)]
        parameters = inspect.signature(entry.make).parameters
        facts = dict(zip(HEADINGS, row(entry), strict=True))
        facts["published by"] = str(entry.source)
        facts["arguments"] = ", ".join(parameters)
        about = (inspect.getdoc(entry.make) or "").partition("\n")[0]
        lines = [f"{heading:<13}{fact}" for heading, fact in facts.items() if heading != "method"]
        return "\n".join([f"{name}: {about}", *lines])

    def markdown(self) -> str:
        """The page docs/methods.md."""
        parts = [_HEAD]
        for family, title in FAMILIES.items():
            parts += [f"## {title}", "", *_table(self.rows(family)), ""]
        parts += ["## Publications", ""]
        sources = sorted({entry.source for entry in self.values()})
        parts += [f"- {source}: {self._methods_of(source)}." for source in sources]
        return "\n".join(parts) + "\n"

    def readme_table(self) -> str:
        """The table of the README: what `markdown` has, without risks and sample counts."""
        heads = [getattr(HEADINGS, name) for name in _IN_README]
        lines = [_line(heads), "|" + "---|" * len(heads)]
        for family, title in FAMILIES.items():
            lines.append(_line([f"**{title}**", *[""] * (len(heads) - 1)]))
            for one in self.rows(family):
                cells = [getattr(one, name) for name in _IN_README]
                lines.append(_line([f"`{one.method}`", *cells[1:]]))
        return "\n".join(lines) + "\n"

    def _methods_of(self, source: object) -> str:
        return ", ".join(f"`{name}`" for name, entry in self.items() if entry.source == source)


def row(entry: Entry) -> Row:
    """What a table says of a method."""
    return Row(
        entry.name,
        f"{entry.source.authors} {entry.source.year}",
        _PROBLEM[entry.problem],
        entry.risk,
        _GRAPH[entry.graph],
        *entry.work,
    )


def _table(lines: list[Row]) -> list[str]:
    head = [_line(HEADINGS), "|" + "---|" * len(HEADINGS)]
    return head + [_line(one._replace(method=f"`{one.method}`")) for one in lines]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


_HEAD = """\
# Methods

Generated from `proxgt.methods.registry` by `registry.markdown()`; a test compares.

Costs are per node and step in the long run: b is `batch`, q `period`, B `refresh`, m the samples
a node holds, K (R for DeTAG) the rounds of the consensus. Methods that take an estimator are
listed with the published one and take any other. "finite sum" asks for exact gradients; a
"population" method needs none and takes an empirical risk too. Methods of one node run on
`problem.pooled()` over `Network.complete(1)`.
"""

registry = Registry(ENTRIES)
