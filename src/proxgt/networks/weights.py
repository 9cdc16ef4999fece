"""Doubly stochastic weight matrices of a graph, and the ends of their spectrum.

Every rule takes links (see `graphs`), adds the self-loops the paper takes for granted, and
returns a W of Assumption 2 whose pattern is the links plus a positive diagonal. Such a W
is primitive and W'W irreducible, so its mixing rate is below one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.sparse import csgraph

from proxgt.networks.graphs import is_directed, order

DENSE = 256  # up to this many nodes a dense decomposition is the faster and simpler one
STIFF = 0.99  # a second eigenvalue from which plain Lanczos may stall
ROUNDING = 1e-14  # eigenvalues below this are zero up to the rounding of the solver


def metropolis(links: sp.csr_array) -> sp.csr_array:
    """w_ij = 1 / (1 + max(d_i, d_j)): local degrees suffice (Xiao, Boyd, Kim 2007)."""
    degrees = np.diff(links.indptr)
    sender, receiver = links.indices, np.repeat(np.arange(len(degrees)), degrees)
    weights = 1.0 / (1.0 + np.maximum(degrees[sender], degrees[receiver]))
    return _with_self_weights(_reweighted(links, weights))


def lazy_metropolis(links: sp.csr_array) -> sp.csr_array:
    """(I + W)/2 of the Metropolis W: positive semi-definite, at half the spectral gap."""
    return (0.5 * sp.eye_array(order(links)) + 0.5 * metropolis(links)).tocsr()


def max_degree(links: sp.csr_array) -> sp.csr_array:
    """w_ij = 1 / (1 + max_k d_k) on every link, the rest on the diagonal."""
    heard, sent = np.diff(links.indptr), links.sum(axis=0)
    if not np.array_equal(heard, sent):
        node = int(np.flatnonzero(heard != sent)[0])
        raise ValueError(
            "weights='max-degree' is doubly stochastic only if every node sends to as many "
            f"nodes as it hears, but node number {node} sends to {int(sent[node])} and hears "
            f"{heard[node]}: use weights='sinkhorn'"
        )
    weights = np.full(links.nnz, 1.0 / (1.0 + heard.max(initial=0)))
    return _with_self_weights(_reweighted(links, weights))


def row_stochastic(links: sp.csr_array) -> sp.csr_array:
    """w_ir = 1 / (1 + in-degree of i): every node averages over all it hears."""
    closed = _closed(links)
    degrees = np.diff(closed.indptr)
    return _reweighted(closed, np.repeat(1.0 / degrees, degrees))


def column_stochastic(links: sp.csr_array) -> sp.csr_array:
    """w_ir = 1 / (1 + out-degree of r): every node splits what it has among its receivers."""
    closed = _closed(links)
    return _reweighted(closed, 1.0 / closed.sum(axis=0)[closed.indices])


def uniform(links: sp.csr_array) -> sp.csr_array:
    """w_ij = 1 / (1 + d_i): doubly stochastic only where degrees are equal."""
    W = row_stochastic(links)
    if abs(W.sum(axis=0) - 1).max() > 1e-12:
        degrees = np.diff(links.indptr)
        raise ValueError(
            "weights='uniform' is doubly stochastic only on regular graphs, but here nodes "
            f"hear between {degrees.min()} and {degrees.max()} others: use "
            "weights='metropolis' on an undirected graph, weights='sinkhorn' on a directed one"
        )
    return W


def sinkhorn(links: sp.csr_array) -> sp.csr_array:
    """The scaling w_ir = u_i a_ir v_r of A = links + I whose rows and columns sum to one.

    It exists and is unique for every strongly connected digraph with all self-loops, as
    each link then lies on a positive diagonal of A (Sinkhorn, Knopp 1967). Their alternate
    normalisation contracts like mixing_rate^2: right for expanders, hopeless on a long
    ring with a chord. There Newton's method finishes, and the Hessian has little fill.
    """
    A = _closed(links)
    transposed = A.T.tocsr()
    u = v = np.ones(order(A))
    for sweep in range(2000):
        u = np.reciprocal(A @ v)
        v = np.reciprocal(transposed @ u)
        if sweep % 10 == 9 and abs(u * (A @ v) - 1).max() <= 4e-16:
            break
    W = _scaled(A, u, v)
    if _imbalance(W) > 1e-14 and mixes(W > 1e-12):
        W = _newton_scaled(W)
    if not mixes(W > 1e-12):
        raise ValueError(
            "weights='sinkhorn' finds that doubly stochastic weights on this digraph have a "
            "mixing rate of 1 in floating point, as only weights below 1e-12 keep it from being "
            "cyclic or cut in two: add links back along its one-way routes"
        )
    # An undirected graph has a symmetric scaling; make it so to the last bit.
    return W if is_directed(links) else ((W + W.T) / 2).tocsr()


RULES: dict[str, Callable[[sp.csr_array], sp.csr_array]] = {
    "metropolis": metropolis,
    "lazy-metropolis": lazy_metropolis,
    "max-degree": max_degree,
    "uniform": uniform,
    "sinkhorn": sinkhorn,
}
UNDIRECTED_ONLY = ("metropolis", "lazy-metropolis")


def mixes(W: Any) -> bool:
    """Whether a doubly stochastic pattern has W'W irreducible, that is, lambda_* < 1.

    i and j are linked in W'W when some node hears both, so W'W is irreducible when the
    bipartite graph of hearing rows and heard columns is connected.
    """
    both = sp.csr_array(sp.block_array([[None, W], [W.T, None]]), dtype=np.float64)
    return csgraph.connected_components(both, directed=False, return_labels=False) == 1


def _closed(links: sp.csr_array) -> sp.csr_array:
    return (links + sp.eye_array(order(links))).tocsr()


def _reweighted(pattern: sp.csr_array, weights: np.ndarray) -> sp.csr_array:
    return sp.csr_array((weights, pattern.indices, pattern.indptr), shape=pattern.shape)


def _with_self_weights(W: sp.csr_array) -> sp.csr_array:
    return (W + sp.diags_array(1.0 - W.sum(axis=1))).tocsr()


def _scaled(A: sp.csr_array, u: np.ndarray, v: np.ndarray) -> sp.csr_array:
    return _reweighted(A, np.repeat(u, np.diff(A.indptr)) * A.data * v[A.indices])


def _imbalance(W: sp.csr_array) -> float:
    """How far the worst row or column sum is from one."""
    return float(max(abs(W.sum(axis=axis) - 1).max() for axis in (0, 1)))


def _newton_scaled(W: sp.csr_array) -> sp.csr_array:
    """The doubly stochastic scaling of W, by Newton's method on a convex function.

    The minimiser of sum_ir w_ir e^(p_i + q_r) - sum p - sum q scales row i by e^p_i and
    column r by e^q_r; the gradient is what the sums miss to one.
    """
    n, error = order(W), _imbalance(W)
    for _ in range(100):
        sums = np.append(W.sum(axis=1), W.sum(axis=0))
        rows, columns = sp.diags_array(sums[:n]), sp.diags_array(sums[n:])
        hessian = sp.block_array([[rows, W], [W.T, columns]]).tocsc()
        # (1, -1) is in the kernel, as rows * t and columns / t change nothing: fix an entry.
        step = np.append(_factorized(hessian[:-1, :-1])(1 - sums[:-1]), 0.0)
        change = np.repeat(step[:n], np.diff(W.indptr)) + step[n:][W.indices]
        # The quadratic model means nothing where an entry grows beyond a factor e.
        size = 1.0 / max(1.0, change.max())
        while W.data @ np.expm1(size * change) > size * step.sum() and size > 1e-8:
            size /= 2
        better = _scaled(W, np.exp(size * step[:n]), np.exp(size * step[n:]))
        before, error = error, _imbalance(better)
        if before < 1e-12 and error >= before:
            return W  # down to rounding
        W = better
    raise ValueError(
        "weights='sinkhorn' did not converge on this digraph, whose doubly stochastic weights "
        f"range from 1 down to {W.data.min():.0e}: add links back along its one-way routes"
    )


def _factorized(A: sp.csc_array) -> Callable[[np.ndarray], np.ndarray]:
    """Solve with a sparse symmetric positive definite matrix."""
    return sla.splu(
        A,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    ).solve


# Spectra -----------------------------------------------------------------------------


def spectrum_ends(W: sp.csr_array) -> tuple[float, float]:
    """Smallest and second largest eigenvalue of a symmetric doubly stochastic W.

    The eigenvalue 1 of the all-ones vector is left out once, so both lie in (-1, 1); a
    single node has no other eigenvalue and gets (0, 0).
    """
    n = order(W)
    if n == 1:
        return 0.0, 0.0
    if n <= DENSE:
        eigenvalues = scipy.linalg.eigvalsh(W.toarray())
        ends = eigenvalues[0], eigenvalues[-2]
    else:
        high = _second_largest(W, lambda: W)
        ends = _smallest(W, stiff=high > STIFF), high
    low, high = (0.0 if abs(end) < ROUNDING else float(end) for end in ends)
    return low, high


def second_singular_value(W: sp.csr_array) -> float:
    """||W - 11'/n||_2 of a doubly stochastic W, eq. (8): sqrt of lambda_2 of W'W."""
    n = order(W)
    if n <= DENSE:
        value = scipy.linalg.norm(W.toarray() - 1.0 / n, 2)
    else:
        transposed = W.T.tocsr()
        gram = sla.aslinearoperator(transposed) @ sla.aslinearoperator(W)
        value = np.sqrt(max(_second_largest(gram, lambda: (transposed @ W).tocsr()), 0.0))
    return 0.0 if value < ROUNDING else float(value)


def _second_largest(S: Any, explicit: Callable[[], sp.csr_array]) -> float:
    """lambda_2 of a symmetric doubly stochastic S, accurate relative to 1 - lambda_2.

    Lanczos with the eigenvalue 1 moved to -1 is right for expanders. It stalls on rings,
    paths and others with a tiny gap; those are the graphs whose Laplacian I - S factorizes
    with little fill, so the largest eigenvalue 1/(1 - lambda_2) of its pseudo-inverse is
    found instead: ground one node, solve, and project out the mean.
    """
    n = order(S)

    def deflated(x: np.ndarray) -> np.ndarray:
        return S @ x - 2 * x.mean()

    if _lanczos(deflated, n, "LA", tolerance=1e-3) <= STIFF:
        return _lanczos(deflated, n, "LA")
    with contextlib.suppress(sla.ArpackNoConvergence):
        return _lanczos(deflated, n, "LA", restarts=75)
    solve = _factorized((sp.eye_array(n) - explicit()).tocsc()[:-1, :-1])

    def pseudo_inverse(x: np.ndarray) -> np.ndarray:
        potential = np.append(solve((x - x.mean())[:-1]), 0.0)
        return potential - potential.mean()

    return 1.0 - 1.0 / _lanczos(pseudo_inverse, n, "LM")


def _smallest(W: sp.csr_array, *, stiff: bool) -> float:
    """lambda_n of a symmetric doubly stochastic W.

    Where Lanczos stalls, as eigenvalues crowd at the end, invert about Gershgorin's bound
    2 min w_ii - 1: it is tight on regular bipartite graphs, which are the crowded ones.
    """
    n = order(W)
    if not stiff:
        return _lanczos(W.dot, n, "SA")
    with contextlib.suppress(sla.ArpackNoConvergence):
        return _lanczos(W.dot, n, "SA", restarts=75)
    bound = 2 * W.diagonal().min() - 1 - 1e-6
    solve = _factorized((W - bound * sp.eye_array(n)).tocsc())
    return bound + 1.0 / _lanczos(solve, n, "LM")


def _lanczos(
    product: Callable[[np.ndarray], np.ndarray],
    n: int,
    which: str,
    *,
    tolerance: float = 0.0,
    restarts: int | None = None,
) -> float:
    """One end of the spectrum of a symmetric operator, by default to rounding."""
    operator = sla.LinearOperator((n, n), matvec=product, dtype=float)  # pyright: ignore[reportCallIssue]
    start = np.random.default_rng(0).standard_normal(n)  # the same answer every time
    found = sla.eigsh(
        operator,
        1,
        which=which,
        v0=start,
        maxiter=restarts,
        tol=tolerance,  # pyright: ignore[reportArgumentType]
        return_eigenvectors=False,
    )
    return float(found[0])
