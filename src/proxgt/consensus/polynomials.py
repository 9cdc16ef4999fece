"""Polynomials of a doubly stochastic W: they average, and how fast is known."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from proxgt.consensus.base import Consensus, Polynomial, run_recurrence
from proxgt.networks import Network
from proxgt.networks.weights import DENSE


class Gossip(Polynomial):
    """W^K, as Algorithm 1 is written."""

    non_negative: ClassVar[bool] = True

    def coefficients(self, network: Network) -> np.ndarray:
        """s_{k+1} = W s_k."""
        return self._every_round(network, 1.0, 0.0, 0.0)

    def contraction(self, network: Network) -> float:
        """lambda_*^K, exact for symmetric W.

        For other W that is a bound, and the norm itself is computed on up to 256 nodes.
        """
        K = self._count(network)
        if network.symmetric or network.nodes > DENSE:
            return network.mixing_rate**K
        return _norm_of_power(network.W, K)


class LazyGossip(Polynomial):
    """((I + W)/2)^K: no negative eigenvalues, whatever those of W."""

    non_negative: ClassVar[bool] = True

    def coefficients(self, network: Network) -> np.ndarray:
        """s_{k+1} = W s_k / 2 + s_k / 2."""
        return self._every_round(network, 0.5, 0.5, 0.0)

    def contraction(self, network: Network) -> float:
        """((1 + lambda_2)/2)^K for symmetric W; else as in Gossip, of (I + W)/2."""
        K = self._count(network)
        if network.nodes == 1:
            return 0.0
        if network.symmetric:
            return ((1 + network.spectrum[1]) / 2) ** K
        if network.nodes > DENSE:
            return ((1 + network.mixing_rate) / 2) ** K
        return _norm_of_power((np.eye(network.nodes) + network.W) / 2, K)


class Chebyshev(Polynomial):
    """The polynomial of W that contracts fastest for the two ends of its spectrum.

    With a = lambda_n and b = lambda_2 (Scaman, Bach, Bubeck, Lee, Massoulie, ICML 2017),

        P = T_K(X) / T_K(theta),  X = (2W - (a + b) I)/(b - a),  theta = (2 - a - b)/(b - a),

    so 1/sqrt(1 - lambda_*) rounds do what takes gossip 1/(1 - lambda_*). Never worse than
    T_K(W/lambda_*) / T_K(1/lambda_*), which takes [-lambda_*, lambda_*] for the spectrum.

    Symmetric W only: T_K is small on a real interval, but a non-symmetric W has complex
    eigenvalues. There P can spread the nodes apart: by 18 on a directed ring with
    lambda_* = 0.92 and K = 16, where W^K leaves 0.28. P may have negative entries, so
    mixed rows can leave dom(h).
    """

    def coefficients(self, network: Network) -> np.ndarray:
        """Of s_k = T_k(X) / T_k(theta), with omega_{k+1} = 2 theta T_k / T_{k+1} at theta.

        s_{k+1} = omega_{k+1} (X / theta) s_k - (omega_{k+1} - 1) s_{k-1} neither overflows
        for large K nor divides by b - a, which is zero on a complete graph.
        """
        _require_symmetric(self, network)
        a, b = network.spectrum
        rho = (b - a) / (2 - a - b)  # 1/theta
        table = np.empty((self._count(network), 3))
        omega = 1.0
        for k in range(len(table)):
            scale = 2 * omega / (2 - a - b)
            # omega - scale, not its own formula, so that rows sum to one: the mean would drift.
            table[k] = scale, omega - scale, 1 - omega
            omega = 1 / (1 - rho**2 * omega / (4 if k else 2))
        return table

    def contraction(self, network: Network) -> float:
        """1/T_K(theta), exact: lambda_2 is an eigenvalue and |T_K| <= 1 at the others."""
        _require_symmetric(self, network)
        a, b = network.spectrum
        # 1/T_K(theta) = 2 c^K / (1 + c^2K) with c = theta - sqrt(theta^2 - 1), and
        # sqrt(theta^2 - 1) as a product, since theta is close to one on slow networks.
        c = (b - a) / (2 - a - b + 2 * math.sqrt((1 - a) * (1 - b)))
        power = c ** self._count(network)
        return 2 * power / (1 + power**2)


class FastMix(Polynomial):
    """Second-order gossip with one constant (Liu, Morse 2011; Ye, Luo, Zhou, Zhang 2023).

        s_{k+1} = (1 + eta) W s_k - eta s_{k-1},  eta = (1 - r)/(1 + r),  r^2 = 1 - lambda_*^2

    Chebyshev's rate with a worse constant, here for the rivals published with it. The first
    rounds spread nodes apart where W has negative eigenvalues, so few rounds may be refused;
    "lazy-metropolis" weights help, which fit its analysis. Symmetric W only.
    """

    automatic: ClassVar[bool] = False

    def coefficients(self, network: Network) -> np.ndarray:
        """(1 + eta, 0, -eta) in every round."""
        spread, _ = self._spread(network)
        if spread >= 1:
            raise ValueError(
                f"FastMix(rounds={self.rounds}) multiplies the disagreement by {spread:.3g} on "
                f"{network!r}: use more rounds, weights='lazy-metropolis', or Chebyshev"
            )
        return self._table(network)

    def contraction(self, network: Network) -> float:
        """max |p_K| over the spectrum; beyond 256 nodes over [lambda_n, lambda_2], a bound."""
        spread, slack = self._spread(network)
        return spread * slack

    def _spread(self, network: Network) -> tuple[float, float]:
        """max |p_K| over some points, and by what factor it may be larger in between."""
        _require_symmetric(self, network)
        if network.nodes <= DENSE:
            points, slack = np.linalg.eigvalsh(network.W)[:-1], 1.0
        else:
            # Between N + 1 Chebyshev points a polynomial of degree K is at most 1/cos(pi K/2N)
            # times as large as on them (Ehlich, Zeller 1964); here N = 16 K.
            (a, b), N = network.spectrum, 16 * self._count(network)
            points = (a + b + (b - a) * np.cos(np.pi * np.arange(N + 1) / N)) / 2
            slack = 1 / math.cos(np.pi / 32)
        values = run_recurrence(lambda s: points * s, self._table(network), np.ones_like(points))
        return float(abs(values).max(initial=0.0)), slack

    def _table(self, network: Network) -> np.ndarray:
        root = math.sqrt((1 - network.mixing_rate) * (1 + network.mixing_rate))
        ahead = 1 + (1 - root) / (1 + root)
        return self._every_round(network, ahead, 0.0, 1 - ahead)  # rows of sum one exactly


def _require_symmetric(consensus: Consensus, network: Network) -> None:
    if not network.symmetric:
        raise ValueError(
            f"{type(consensus).__name__} needs a symmetric W and may spread nodes apart on "
            f"another, as on {network!r}: use Gossip(rounds={consensus.rounds!r})"
        )


def _norm_of_power(W: np.ndarray, K: int) -> float:
    """||W^K - 11'/n||_2 of a doubly stochastic W, as W^K - 11'/n = (W - 11'/n)^K."""
    return float(np.linalg.norm(np.linalg.matrix_power(W - 1 / len(W), K), 2))
