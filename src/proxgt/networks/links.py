"""Networks that are not the same at every round: failing links, schedules, paused nodes.

    unreliable(network, link_failure=0.3)             each link fails at each round by chance
    unreliable(network, outages=[Outage(2, 100, 200)])    node 2 pauses in steps 100 to 199
    varying([one, other])                             W_t in turn, a step each
    varying(function, over=network)                   W_t = function(t), on links of `network`

A failed link is dropped in both directions and its weight returned to the diagonal at both
ends, so every W_t is doubly stochastic and trackers keep their mean (eq. 11). A paused node
has no links and keeps all its rows as they are, so that too leaves every mean alone. Draws
depend on the seed, step, exchange, round and link only: all engines fail the same links.

Counts of samples and rounds are those of a run in which nothing fails.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from proxgt import checks
from proxgt.networks.graphs import order, read_square

if TYPE_CHECKING:
    from proxgt.networks.network import Network


@dataclass(frozen=True)
class Outage:
    """Node `node` pauses in steps begin to end - 1, counted from zero."""

    node: int
    begin: int
    end: int

    def __post_init__(self) -> None:
        checks.positive_int("node", self.node, least=0)
        checks.positive_int("begin", self.begin, least=0)
        if checks.positive_int("end", self.end) <= self.begin:
            raise ValueError(f"end must be > begin={self.begin}, got {self.end}")


@dataclass(frozen=True, eq=False)
class Links:
    """How the links of a network differ from round to round; its W is the whole of them."""

    failure: float = 0.0
    outages: tuple[Outage, ...] = ()
    schedule: tuple[sp.csr_array, ...] | Callable[[int], Any] | None = None

    def __post_init__(self) -> None:
        if not 0 <= checks.finite_number("link_failure", self.failure) < 1:
            raise ValueError(f"link_failure must be in [0, 1), got {self.failure!r}")

    @property
    def need_symmetry(self) -> bool:
        """Whether weights return to the diagonal, which leaves only a symmetric W stochastic."""
        return self.failure > 0 or bool(self.outages)

    def described(self) -> dict[str, Any]:
        """What makes these links themselves, for checkpoints."""
        schedule: Any = self.schedule
        if isinstance(schedule, tuple):
            schedule = [(W.indptr, W.indices, W.data) for W in schedule]
        return {"failure": self.failure, "outages": self.outages, "schedule": schedule}

    def table(self, whole: sp.csr_array, begin: int, steps: int) -> np.ndarray:
        """Entries of W_t as those of `whole` lie, a row a step of the period or of the chunk."""
        if self.schedule is None:
            return whole.data[None]
        if isinstance(self.schedule, tuple):
            return np.stack([_entries(W, whole, k) for k, W in enumerate(self.schedule)])
        times = range(begin, begin + steps)
        every = [weights_of(self.schedule(t), t) for t in times]
        if self.need_symmetry:
            _require_symmetric(every, begin)
        return np.stack([_entries(W, whole, t) for t, W in zip(times, every, strict=True)])


def unreliable(
    network: Network, link_failure: float = 0.0, outages: Sequence[Outage] = ()
) -> Network:
    """The network with links that fail and nodes that pause; its W must be symmetric.

    What was said before of the same network stays: its schedule and outages, and its
    `link_failure` unless another is given.
    """
    before = network.links or Links()
    links = Links(link_failure or before.failure, (*before.outages, *outages), before.schedule)
    if not network.symmetric and links.need_symmetry:
        raise ValueError(
            "link_failure and outages need a symmetric W: weight that returns to the diagonal "
            f"leaves no other doubly stochastic; {network!r} has none"
        )
    for outage in outages:
        if not isinstance(outage, Outage):
            raise TypeError(f"outages must be Outage(node, begin, end), got {outage!r}")
        if outage.node >= network.nodes:
            raise ValueError(f"outages name node {outage.node} of {network.nodes} nodes")
    if links.need_symmetry and isinstance(links.schedule, tuple):
        _require_symmetric(links.schedule, 0)
    return _with(network, links)


def varying(schedule: Sequence[Any] | Callable[[int], Any], over: Network | None = None) -> Network:
    """The network whose W_t, at every step t, is the next in turn or `schedule(t)`.

    Each W_t is a `Network` or a doubly stochastic array, and need not be connected by
    itself. W of the result, which stands for all in theory and metrics, is the mean of a
    sequence, or that of `over`, whose links a function must keep to.
    """
    from proxgt.networks.network import Network

    if callable(schedule):
        if not isinstance(over, Network):
            raise ValueError(f"over must be the Network that holds all links, got {over!r}")
        before = over.links or Links()
        return _with(over, dataclasses.replace(before, schedule=schedule))
    if not isinstance(schedule, Sequence | np.ndarray):
        raise TypeError(f"schedule must be a sequence of networks or a function, got {schedule!r}")
    every = tuple(weights_of(one, k) for k, one in enumerate(schedule))
    if not every:
        raise ValueError("schedule must hold at least one network, got none")
    if len({W.shape for W in every}) > 1:
        raise ValueError(
            f"schedule must hold networks of one size, got {[order(W) for W in every]} nodes"
        )
    mean = sum(every[1:], start=every[0]) / len(every)
    return _with(Network.from_weights(mean), Links(schedule=every))


def weights_of(value: Any, t: int) -> sp.csr_array:
    """W of a network or array, doubly stochastic."""
    from proxgt.networks.network import Network

    if isinstance(value, Network):
        if value.links is not None:
            raise ValueError(
                f"the network at t = {t} must not itself have links that fail or vary: give "
                "unreliable(varying(...), link_failure)"
            )
        return value.sparse
    if not (sp.issparse(value) or isinstance(value, list | tuple) or hasattr(value, "__array__")):
        raise TypeError(
            f"the network at t = {t} must be a Network or a doubly stochastic array, got {value!r}"
        )
    W = read_square(f"the weights at t = {t}", value)
    if (W.data < 0).any() or any(abs(W.sum(axis=k) - 1).max() > 1e-8 for k in (0, 1)):
        raise ValueError(
            f"the weights at t = {t} must be doubly stochastic: non-negative, with "
            "rows and columns that sum to 1"
        )
    return W


def _require_symmetric(every: Sequence[sp.csr_array], begin: int) -> None:
    for t, W in enumerate(every, start=begin):
        if abs(W - W.T).max() > 1e-12:
            raise ValueError(f"link_failure and outages need a symmetric W, also at t = {t}")


def _with(network: Network, links: Links) -> Network:
    other = copy.copy(network)
    object.__setattr__(other, "links", links)
    return other


def _entries(W: sp.csr_array, whole: sp.csr_array, t: int) -> np.ndarray:
    if W.shape != whole.shape:
        raise ValueError(f"the network at t = {t} has {order(W)} nodes, not {order(whole)}")
    rows = np.repeat(np.arange(order(whole)), np.diff(whole.indptr))
    out = np.asarray(W[rows, whole.indices]).ravel()
    if not np.isclose(out.sum(), W.sum(), rtol=1e-9):
        raise ValueError(f"the network at t = {t} has links that the whole network has not")
    return out
