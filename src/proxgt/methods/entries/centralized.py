"""Methods of one machine."""

from __future__ import annotations

from proxgt.methods.centralized import FISTA, ProxGD, ProxSGD
from proxgt.methods.entries.entry import SARAH, B, Entry, Publication, Work, a, b, q
from proxgt.methods.reduced import (
    ProxHSGD,
    ProxSAGA,
    ProxSARAH,
    ProxSpiderBoost,
    ProxSVRG,
)

_REDDI = Publication(
    "Reddi, Sra, Poczos, Smola",
    "Proximal stochastic methods for nonsmooth nonconvex finite-sum optimization",
    "NeurIPS",
    2016,
)

ENTRIES = (
    Entry(
        ProxGD,
        "centralized",
        Publication("Beck", "First-order methods in optimization", "SIAM", 2017),
        "composite",
        "finite sum",
        "one node",
        Work("0", "m", "m"),
        lambda: ProxGD(a),
    ),
    Entry(
        FISTA,
        "centralized",
        Publication(
            "Beck, Teboulle",
            "A fast iterative shrinkage-thresholding algorithm for linear inverse problems",
            "SIAM Journal on Imaging Sciences",
            2009,
        ),
        "composite",
        "finite sum",
        "one node",
        Work("0", "m", "m"),
        lambda: FISTA(a),
    ),
    Entry(
        ProxSGD,
        "centralized",
        Publication(
            "Ghadimi, Lan, Zhang",
            "Mini-batch stochastic approximation methods for nonconvex stochastic composite "
            "optimization",
            "Mathematical Programming",
            2016,
        ),
        "composite",
        "population",
        "one node",
        Work("0", "b", "b"),
        lambda: ProxSGD(b, a),
    ),
    Entry(
        ProxSARAH,
        "centralized",
        Publication(
            "Pham, Nguyen, Phan, Tran-Dinh",
            "ProxSARAH: an efficient algorithmic framework for stochastic composite nonconvex "
            "optimization",
            "Journal of Machine Learning Research",
            2020,
        ),
        "composite",
        "finite sum",
        "one node",
        SARAH,
        lambda: ProxSARAH(b, q, a),
    ),
    Entry(
        ProxSpiderBoost,
        "centralized",
        Publication(
            "Wang, Ji, Zhou, Liang, Tarokh",
            "SpiderBoost and momentum: faster variance reduction algorithms",
            "NeurIPS",
            2019,
        ),
        "composite",
        "finite sum",
        "one node",
        SARAH,
        lambda: ProxSpiderBoost(b, q, a),
    ),
    Entry(
        ProxSVRG,
        "centralized",
        _REDDI,
        "composite",
        "finite sum",
        "one node",
        SARAH,
        lambda: ProxSVRG(b, q, a),
    ),
    Entry(
        ProxSAGA,
        "centralized",
        _REDDI,
        "composite",
        "finite sum",
        "one node",
        Work("0", "2b", "2b"),
        lambda: ProxSAGA(b, a),
    ),
    Entry(
        ProxHSGD,
        "centralized",
        Publication(
            "Tran-Dinh, Pham, Phan, Nguyen",
            "A hybrid stochastic optimization framework for composite nonconvex optimization",
            "Mathematical Programming",
            2022,
        ),
        "composite",
        "population",
        "one node",
        Work("0", "2b", "3b"),
        lambda: ProxHSGD(b, 0.3, a, first=B),
    ),
)
