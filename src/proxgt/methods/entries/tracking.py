"""Smooth methods with a tracker over a doubly stochastic W."""

from __future__ import annotations

from proxgt.consensus import Chebyshev, FastMix
from proxgt.estimators import FullGradient, Minibatch
from proxgt.methods.diging import D_GET, GNSD, GT_SARAH, DIGing
from proxgt.methods.entries.entry import (
    SARAH,
    SYMBOLS,
    TRACKED_FULL,
    TRACKED_SARAH,
    TRACKED_SGD,
    W2,
    B,
    Entry,
    Publication,
    Work,
    a,
    b,
    q,
)
from proxgt.methods.nested import DESTRESS, DestressConsensus, Network_SARAH
from proxgt.methods.tracking import GT_DSGD, GT_HSGD, GT_SAGA, DeTAG

DIGING = Publication(
    "Nedic, Olshevsky, Shi",
    "Achieving geometric convergence for distributed optimization over time-varying graphs",
    "SIAM Journal on Optimization",
    2017,
)

ENTRIES = (
    Entry(
        DIGing,
        "smooth",
        DIGING,
        "smooth",
        "finite sum",
        "doubly stochastic",
        TRACKED_FULL,
        lambda: DIGing(FullGradient(), a / 2, W2),
    ),
    Entry(
        GNSD,
        "smooth",
        Publication(
            "Lu, Zhang, Sun, Hong",
            "GNSD: a gradient-tracking based nonconvex stochastic algorithm for decentralized "
            "optimization",
            "IEEE Data Science Workshop",
            2019,
        ),
        "smooth",
        "population",
        "doubly stochastic",
        TRACKED_SGD,
        lambda: GNSD(Minibatch(b), a / 2, W2),
    ),
    Entry(
        GT_DSGD,
        "smooth",
        Publication(
            "Xin, Khan, Kar",
            "An improved convergence analysis for decentralized online stochastic non-convex "
            "optimization",
            "IEEE Transactions on Signal Processing",
            2021,
        ),
        "smooth",
        "population",
        "doubly stochastic",
        TRACKED_SGD,
        lambda: GT_DSGD(Minibatch(b), a, W2),
    ),
    Entry(
        GT_SAGA,
        "smooth",
        Publication(
            "Xin, Khan, Kar",
            "A fast randomized incremental gradient method for decentralized non-convex "
            "optimization",
            "IEEE Transactions on Automatic Control",
            2022,
        ),
        "smooth",
        "finite sum",
        "doubly stochastic",
        Work("2K", "2b", "2b"),
        lambda: GT_SAGA(b, a, W2),
    ),
    Entry(
        GT_SARAH,
        "smooth",
        Publication(
            "Xin, Khan, Kar",
            "Fast decentralized non-convex finite-sum optimization with recursive variance "
            "reduction",
            "SIAM Journal on Optimization",
            2022,
        ),
        "smooth",
        "finite sum",
        "doubly stochastic",
        TRACKED_SARAH,
        lambda: GT_SARAH(b, q, a / 2, W2),
    ),
    Entry(
        GT_HSGD,
        "smooth",
        Publication(
            "Xin, Khan, Kar",
            "A hybrid variance-reduced method for decentralized stochastic non-convex optimization",
            "ICML",
            2021,
        ),
        "smooth",
        "population",
        "doubly stochastic",
        Work("2K", "b", "2b"),
        lambda: GT_HSGD(b, 0.3, B, a, W2),
    ),
    Entry(
        D_GET,
        "smooth",
        Publication(
            "Sun, Lu, Hong",
            "Improving the sample and communication complexity for decentralized non-convex "
            "optimization: joint gradient estimation and tracking",
            "ICML",
            2020,
        ),
        "smooth",
        "finite sum",
        "doubly stochastic",
        TRACKED_SARAH,
        lambda: D_GET(b, q, a / 2, W2),
    ),
    Entry(
        DeTAG,
        "smooth",
        Publication("Lu, De Sa", "Optimal complexity in decentralized training", "ICML", 2021),
        "smooth",
        "population",
        "symmetric",
        Work("2R", "b", "b"),
        lambda: DeTAG(Minibatch(b), a / 2, FastMix(SYMBOLS["R"])),
    ),
    Entry(
        Network_SARAH,
        "smooth",
        Publication(
            "Li, Cen, Chen, Chi",
            "Communication-efficient distributed optimization in networks with gradient "
            "tracking and variance reduction",
            "Journal of Machine Learning Research",
            2020,
        ),
        "smooth",
        "finite sum",
        "doubly stochastic",
        Work("2K/q", SARAH.samples, SARAH.evaluations),
        lambda: Network_SARAH(b, q, a / 5, W2),
    ),
    Entry(
        DESTRESS,
        "smooth",
        Publication(
            "Li, Li, Chi",
            "DESTRESS: computation-optimal and communication-efficient decentralized nonconvex "
            "finite-sum optimization",
            "SIAM Journal on Mathematics of Data Science",
            2022,
        ),
        "smooth",
        "finite sum",
        "symmetric",
        Work("((2q-1) K_in + K_out)/q", SARAH.samples, SARAH.evaluations),
        lambda: DESTRESS(
            b, q, a, DestressConsensus(Chebyshev(2), Chebyshev(3), Chebyshev("auto", 1e-8))
        ),
    ),
)
