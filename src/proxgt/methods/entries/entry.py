"""What the table of methods says of one method: an `Entry`, and the words an entry may use.

Costs are per node and step, as a method's `cost` has them in the long run, with b `batch`,
q `period`, B `refresh`, m the samples a node holds, and K `rounds` of the consensus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from proxgt.consensus import Gossip
from proxgt.methods.base import Method

FAMILIES = {
    "proxgt": "ProxGT",
    "smooth": "Decentralized, smooth",
    "composite": "Decentralized, composite or constrained",
    "later": "After the ProxGT paper",
    "centralized": "On one machine",
}
# What h a method takes, what it asks of the risk, and of the network.
PROBLEMS = ("composite", "smooth", "set", "compact set")
RISKS = ("population", "finite sum")
GRAPHS = ("digraph", "doubly stochastic", "symmetric", "undirected", "one node")


class Publication(NamedTuple):
    """Where a method was published."""

    authors: str
    title: str
    venue: str
    year: int

    def __str__(self) -> str:
        return f'{self.authors}, "{self.title}", {self.venue} {self.year}'


class Work(NamedTuple):
    """What a step costs, as formulas."""

    rounds: str
    samples: str
    evaluations: str


@dataclass(frozen=True)
class Entry:
    """One method.

    Attributes:
        make: the class, or the function that makes it.
        family: a key of `FAMILIES`.
        source: where it was published.
        problem: "composite", any h; "smooth", none; "set", the indicator of a set; "compact
            set", one with a linear minimizer.
        risk: "finite sum", it needs exact gradients; "population", it needs none. As
            published: a method that takes an estimator takes any.
        graph: "digraph", any strongly connected one; a "doubly stochastic" or "symmetric"
            W; "undirected", without weights; "one node".
        work: what a step costs, with the estimator as published.
        example: a method for a small problem of smoothness about 5, with `SYMBOLS`.
    """

    make: Callable[..., Method]
    family: str
    source: Publication
    problem: str
    risk: str
    graph: str
    work: Work
    example: Callable[[], Method]

    @property
    def name(self) -> str:
        """The public name."""
        return self.make.__name__


# What the letters of `work` are in the examples.
SYMBOLS = {"b": 2, "q": 5, "B": 6, "K": 2, "R": 3, "K_in": 2, "K_out": 3}
b, q, B = SYMBOLS["b"], SYMBOLS["q"], SYMBOLS["B"]
W2, a = Gossip(SYMBOLS["K"]), 0.05  # a: the step size of the examples

# Costs that many methods share: of sampled and of full gradients, of SARAH's, with a tracker.
SGD = Work("K", "b", "b")
FULL = Work("K", "m", "m")
SARAH = Work("0", "(m + (q-1) b)/q", "(m + 2(q-1) b)/q")
TRACKED_SGD = SGD._replace(rounds="2K")
TRACKED_FULL = FULL._replace(rounds="2K")
TRACKED_SARAH = SARAH._replace(rounds="2K")
