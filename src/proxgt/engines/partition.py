"""Which rank holds which nodes: blocks of nearly equal size that cut few links."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from proxgt.networks import graphs

_SPECTRAL = 1000  # nodes up to which the Laplacian's eigenvectors are worth computing


def partition(links: sp.csr_array, ranks: int) -> list[np.ndarray]:
    """Sorted node ids by rank; sizes differ by at most one.

    Each candidate is an ordering of the nodes cut into consecutive pieces: the user's own
    order (right for rings, paths and grids), depth first (right for rings and paths in any
    order), reverse Cuthill-McKee, and the Fiedler vector's.
    The one that cuts the fewest links wins, the first of them in a tie. Node 0 is at rank 0.
    """
    nodes = graphs.order(links)
    if not 1 <= ranks <= nodes:
        raise ValueError(
            f"{ranks} ranks are more than the {nodes} nodes they should hold: start at most "
            f"{nodes} ranks"
        )
    if ranks == 1:
        return [np.arange(nodes)]
    both = ((links + links.T) != 0).astype(np.float64).tocsr()
    candidates = [np.array_split(order, ranks) for order in _orders(both)]
    best = min(candidates, key=lambda blocks: cut(both, blocks))
    return sorted((np.sort(block) for block in best), key=lambda block: block[0])


def cut(links: sp.csr_array, blocks: list[np.ndarray]) -> int:
    """How many directed links join different blocks."""
    owner = owners(blocks)
    receivers, senders = links.nonzero()
    return int((owner[receivers] != owner[senders]).sum())


def owners(blocks: list[np.ndarray]) -> np.ndarray:
    """The rank of every node."""
    owner = np.empty(sum(map(len, blocks)), np.int64)
    for rank, block in enumerate(blocks):
        owner[block] = rank
    return owner


def _orders(links: sp.csr_array) -> Iterator[np.ndarray]:
    nodes = graphs.order(links)
    yield np.arange(nodes)
    yield csgraph.depth_first_order(links, 0, directed=False, return_predecessors=False)
    yield np.asarray(csgraph.reverse_cuthill_mckee(links, symmetric_mode=True), np.int64)
    if nodes <= _SPECTRAL:
        laplacian = csgraph.laplacian(links).toarray()
        fiedler = np.linalg.eigh(laplacian)[1][:, 1]
        yield np.argsort(fiedler, kind="stable")
