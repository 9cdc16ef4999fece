"""Decentralized methods for composite or constrained problems."""

from __future__ import annotations

from proxgt.consensus import ColumnStochastic, LazyGossip
from proxgt.estimators import FullGradient, Minibatch
from proxgt.methods.composite import DeFW, Projected_DSGD, Prox_DGD
from proxgt.methods.diffusion import Prox_ED
from proxgt.methods.entries.entry import FULL, SGD, TRACKED_FULL, W2, Entry, Publication, Work, a, b
from proxgt.methods.primal_dual import NIDS, PG_EXTRA
from proxgt.methods.sppdm import PPDM, SPPDM
from proxgt.methods.successive import NEXT, SONATA

_SPPDM = Publication(
    "Wang, Zhang, Chang, Li, Luo",
    "Distributed stochastic consensus optimization with momentum for nonconvex nonsmooth problems",
    "IEEE Transactions on Signal Processing",
    2021,
)

ENTRIES = (
    Entry(
        Prox_DGD,
        "composite",
        Publication(
            "Zeng, Yin",
            "On nonconvex decentralized gradient descent",
            "IEEE Transactions on Signal Processing",
            2018,
        ),
        "composite",
        "finite sum",
        "symmetric",
        FULL,
        lambda: Prox_DGD(FullGradient(), a, W2),
    ),
    Entry(
        Projected_DSGD,
        "composite",
        Publication(
            "Bianchi, Jakubowicz",
            "Convergence of a multi-agent projected stochastic gradient algorithm for "
            "non-convex optimization",
            "IEEE Transactions on Automatic Control",
            2013,
        ),
        "set",
        "population",
        "doubly stochastic",
        SGD,
        lambda: Projected_DSGD(Minibatch(b), a, W2),
    ),
    Entry(
        NEXT,
        "composite",
        Publication(
            "Di Lorenzo, Scutari",
            "NEXT: in-network nonconvex optimization",
            "IEEE Transactions on Signal and Information Processing over Networks",
            2016,
        ),
        "composite",
        "finite sum",
        "doubly stochastic",
        TRACKED_FULL,
        lambda: NEXT(FullGradient(), a, W2),
    ),
    Entry(
        SONATA,
        "composite",
        Publication(
            "Scutari, Sun",
            "Distributed nonconvex constrained optimization over time-varying digraphs",
            "Mathematical Programming",
            2019,
        ),
        "composite",
        "finite sum",
        "digraph",
        TRACKED_FULL,
        lambda: SONATA(FullGradient(), a, ColumnStochastic(2)),
    ),
    Entry(
        DeFW,
        "composite",
        Publication(
            "Wai, Lafond, Scaglione, Moulines",
            "Decentralized Frank-Wolfe algorithm for convex and non-convex problems",
            "IEEE Transactions on Automatic Control",
            2017,
        ),
        "compact set",
        "finite sum",
        "symmetric",
        TRACKED_FULL,
        lambda: DeFW(FullGradient(), consensus=W2),
    ),
    Entry(
        NIDS,
        "composite",
        Publication(
            "Li, Shi, Yan",
            "A decentralized proximal-gradient method with network independent step-sizes and "
            "separated convergence rates",
            "IEEE Transactions on Signal Processing",
            2019,
        ),
        "composite",
        "finite sum",
        "symmetric",
        FULL,
        lambda: NIDS(FullGradient(), a, LazyGossip(2)),
    ),
    Entry(
        PG_EXTRA,
        "composite",
        Publication(
            "Shi, Ling, Wu, Yin",
            "A proximal gradient algorithm for decentralized composite optimization",
            "IEEE Transactions on Signal Processing",
            2015,
        ),
        "composite",
        "finite sum",
        "symmetric",
        FULL,
        lambda: PG_EXTRA(FullGradient(), a, W2),
    ),
    Entry(
        Prox_ED,
        "composite",
        Publication(
            "Alghunaim, Ryu, Yuan, Sayed",
            "Decentralized proximal gradient algorithms with linear convergence rates",
            "IEEE Transactions on Automatic Control",
            2021,
        ),
        "composite",
        "finite sum",
        "symmetric",
        FULL,
        lambda: Prox_ED(FullGradient(), a, LazyGossip(2)),
    ),
    Entry(
        SPPDM,
        "composite",
        _SPPDM,
        "composite",
        "population",
        "undirected",
        Work("1", "b", "b"),
        lambda: SPPDM(Minibatch(b), a, momentum=0.8),
    ),
    Entry(
        PPDM,
        "composite",
        _SPPDM,
        "composite",
        "finite sum",
        "undirected",
        Work("1", "m", "m"),
        lambda: PPDM(a),
    ),
)
