"""Consensus: what W^K of lines 3 and 5 of Algorithm 1 is replaced by.

Every consensus is one three-term recurrence of K rounds over a weight matrix,

    s_{k+1} = a_k W s_k + b_k s_k + c_k s_{k-1},    s_0 = s_{-1} = rows,    output s_K,

so it is that matrix and a (K, 3) array of coefficients, and a round is one exchange with
all neighbours. Engines need not know which consensus they run: one multiplies by the dense
polynomial, another sums over sparse neighbours, a third sends messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from proxgt.checks import positive_int, positive_number
from proxgt.networks import Network

TARGET = 0.1  # below 0.2 the network no longer limits the step size in the appendix
MOST_ROUNDS = 10**6


def run_recurrence(exchange: Callable[[Any], Any], coefficients: np.ndarray, rows: Any) -> Any:
    """s_K of the recurrence above; `exchange` maps rows (nodes, ...) to W rows.

    Rows may be NumPy or JAX arrays and keep their dtype. The K rounds are unrolled.
    """
    last, now = rows, rows
    # Python floats: NumPy's float64 scalars would promote float32 rows.
    for a, b, c in coefficients.tolist():
        mixed = exchange(now)
        mixed = mixed if a == 1 else a * mixed
        mixed = mixed + b * now if b else mixed
        mixed = mixed + c * last if c else mixed
        last, now = now, mixed
    return now


@dataclass(frozen=True)
class Consensus(ABC):
    """A linear map P of rows over a network, applied in `rounds` exchanges.

    `rounds="auto"` stands for the fewest rounds that leave at most a share `target` of the
    disagreement between nodes, 0.1 unless given. The theorems take lambda_*^K of the order
    of 1/(n zeta); give that as `target`. Plain configuration: hashable, compared by value.
    """

    rounds: int | Literal["auto"] = 1
    target: float | None = None
    automatic: ClassVar[bool] = True  # whether "auto" is known to make sense
    non_negative: ClassVar[bool] = False  # whether P has no negative entries, whatever the W

    def __post_init__(self) -> None:
        name, rounds = type(self).__name__, self.rounds
        if rounds != "auto":
            if isinstance(rounds, str):
                raise ValueError(f"rounds must be an integer >= 1 or 'auto', got {rounds!r}")
            if self.target is not None:
                raise ValueError(
                    f"target={self.target!r} goes with rounds='auto', got rounds={rounds!r}"
                )
            object.__setattr__(self, "rounds", positive_int("rounds", rounds))
        elif not self.automatic:
            raise ValueError(
                f"rounds='auto' needs a contraction that falls with every round, which {name} "
                "does not promise: give rounds an integer, or use Gossip or Chebyshev"
            )
        elif self.target is not None and positive_number("target", self.target) >= 1:
            raise ValueError(
                "target must be in (0, 1), the share of disagreement left after all rounds, "
                f"got {self.target!r}"
            )

    @abstractmethod
    def coefficients(self, network: Network) -> np.ndarray:
        """(a_k, b_k, c_k) of the recurrence, (rounds, 3), or ValueError with a remedy."""

    @abstractmethod
    def weights(self, network: Network) -> sp.csr_array:
        """The matrix W of the recurrence, sparse (nodes, nodes)."""

    @abstractmethod
    def contraction(self, network: Network) -> float:
        """||P - 11'/n||_2: the share of the disagreement between nodes that is left."""

    def check(self, network: Network) -> None:
        """Raise ValueError where this consensus cannot run, naming one that can."""
        self.coefficients(network)

    def resolve(self, network: Network) -> Self:
        """This consensus with rounds="auto" replaced by a number, fit for this network."""
        if self.rounds != "auto":
            return self
        target = TARGET if self.target is None else self.target

        def reached(rounds: int) -> bool:
            return type(self)(rounds).contraction(network) <= target

        enough = 1
        while not reached(enough):
            enough *= 2
            if enough > MOST_ROUNDS:
                raise ValueError(
                    f"rounds='auto' with target={target:g} needs more than {MOST_ROUNDS:,} "
                    f"rounds of {type(self).__name__} on {network!r}: use Chebyshev on a "
                    "symmetric W, a larger target, or a better connected network"
                )
        short = enough // 2
        while enough - short > 1:
            middle = (short + enough) // 2
            short, enough = (short, middle) if reached(middle) else (middle, enough)
        return type(self)(enough)

    def matrix(self, network: Network) -> np.ndarray:
        """P as a dense (nodes, nodes) array, by the same recurrence in float64."""
        W = self.weights(network)
        return run_recurrence(W.dot, self.coefficients(network), np.eye(network.nodes))

    def _count(self, network: Network) -> int:
        rounds = self.resolve(network).rounds
        assert rounds != "auto"
        return rounds

    def _every_round(self, network: Network, *coefficients: float) -> np.ndarray:
        return np.tile(coefficients, (self._count(network), 1))


class Polynomial(Consensus):
    """A consensus that is a polynomial of the network's W with p(1) = 1.

    W is doubly stochastic, so the network mean of the rows is kept.
    """

    def weights(self, network: Network) -> sp.csr_array:
        """The network's own doubly stochastic W."""
        return network.sparse
