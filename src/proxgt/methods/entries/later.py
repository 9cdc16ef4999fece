"""Methods published after the paper."""

from __future__ import annotations

from proxgt.estimators import Minibatch
from proxgt.methods.compressors import TopK
from proxgt.methods.deepstorm import DEEPSTORM_v1, DEEPSTORM_v2
from proxgt.methods.entries.entry import TRACKED_SGD, W2, B, Entry, Publication, Work, a, b
from proxgt.methods.followups import CDProxSGT, DProxSGT, Prox_DASA, Prox_DASA_GT

_DEEPSTORM = Publication(
    "Mancino-Ball, Miao, Xu, Chen",
    "Proximal stochastic recursive momentum methods for nonconvex composite decentralized "
    "optimization",
    "AAAI",
    2023,
)

_DASA = Publication(
    "Xiao, Chen, Balasubramanian, Ghadimi",
    "A one-sample decentralized proximal algorithm for non-convex stochastic composite "
    "optimization",
    "UAI",
    2023,
)

_DPROXSGT = Publication(
    "Yan, Chen, Chen, Cui, Lu, Xu",
    "Compressed decentralized proximal stochastic gradient method for nonconvex composite "
    "problems with heterogeneous data",
    "ICML",
    2023,
)

ENTRIES = (
    Entry(
        DEEPSTORM_v1,
        "later",
        _DEEPSTORM,
        "composite",
        "population",
        "symmetric",
        Work("2K", "2b", "3b"),
        lambda: DEEPSTORM_v1(b, a, 0.3, B, W2),
    ),
    Entry(
        DEEPSTORM_v2,
        "later",
        _DEEPSTORM,
        "composite",
        "population",
        "symmetric",
        Work("2K", "b", "2b"),
        lambda: DEEPSTORM_v2(b, a, 0.3, B, W2),
    ),
    Entry(
        Prox_DASA,
        "later",
        _DASA,
        "composite",
        "population",
        "symmetric",
        TRACKED_SGD,
        lambda: Prox_DASA(Minibatch(b), 2 * a, W2),
    ),
    Entry(
        Prox_DASA_GT,
        "later",
        _DASA,
        "composite",
        "population",
        "symmetric",
        Work("3K", "b", "b"),
        lambda: Prox_DASA_GT(Minibatch(b), 2 * a, W2),
    ),
    Entry(
        DProxSGT,
        "later",
        _DPROXSGT,
        "composite",
        "population",
        "doubly stochastic",
        TRACKED_SGD,
        lambda: DProxSGT(b, a, W2),
    ),
    Entry(
        CDProxSGT,
        "later",
        _DPROXSGT,
        "composite",
        "population",
        "symmetric",
        Work("2", "b", "b"),
        lambda: CDProxSGT(Minibatch(b), TopK(0.5), a),
    ),
)
