"""Powers of matrices that only sum to one by rows or by columns, which any digraph has."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from proxgt.consensus.base import Consensus
from proxgt.networks import Network
from proxgt.networks.weights import column_stochastic, row_stochastic


class ColumnStochastic(Consensus):
    """C^K, c_ir = 1/(1 + out-degree of r): what push-sum sends (Kempe, Dobra, Gehrke 2003).

    Keeps the sum of the rows and needs no W: a node only counts whom it sends to.
    """

    automatic: ClassVar[bool] = False
    non_negative: ClassVar[bool] = True

    def coefficients(self, network: Network) -> np.ndarray:
        """s_{k+1} = C s_k."""
        return self._every_round(network, 1.0, 0.0, 0.0)

    def weights(self, network: Network) -> sp.csr_array:
        """C, whose columns sum to one."""
        return column_stochastic(network.adjacency)

    def contraction(self, network: Network) -> float:
        """Refused: powers of C do not tend to 11'/n."""
        raise _does_not_average(self)


class RowStochastic(Consensus):
    """R^K, r_ir = 1/(1 + in-degree of i): every node averages over all it hears.

    Keeps equal rows equal but not their mean, and needs no W: a node only listens.
    """

    automatic: ClassVar[bool] = False
    non_negative: ClassVar[bool] = True

    def coefficients(self, network: Network) -> np.ndarray:
        """s_{k+1} = R s_k."""
        return self._every_round(network, 1.0, 0.0, 0.0)

    def weights(self, network: Network) -> sp.csr_array:
        """R, whose rows sum to one."""
        return row_stochastic(network.adjacency)

    def contraction(self, network: Network) -> float:
        """Refused: powers of R do not tend to 11'/n."""
        raise _does_not_average(self)


def _does_not_average(consensus: Consensus) -> ValueError:
    return ValueError(
        f"{type(consensus).__name__} has no contraction: its powers do not tend to 11'/n; "
        "Gossip on a doubly stochastic W does average"
    )
