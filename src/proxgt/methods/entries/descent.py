"""Smooth methods without a tracker: DSGD and its kin, and those that correct its bias by a dual."""

from __future__ import annotations

from proxgt.consensus import LazyGossip
from proxgt.estimators import FullGradient, Minibatch
from proxgt.methods.diffusion import D2, D_SPIDER_SFO, ExactDiffusion
from proxgt.methods.entries.entry import FULL, SARAH, SGD, W2, Entry, Publication, Work, a, b, q
from proxgt.methods.gradient import DSGD, DSGD_ATC, DecentLaM
from proxgt.methods.primal_dual import EXTRA

ENTRIES = (
    Entry(
        DSGD,
        "smooth",
        Publication(
            "Lian, Zhang, Zhang, Hsieh, Zhang, Liu",
            "Can decentralized algorithms outperform centralized algorithms? A case study for "
            "decentralized parallel stochastic gradient descent",
            "NeurIPS",
            2017,
        ),
        "smooth",
        "population",
        "doubly stochastic",
        SGD,
        lambda: DSGD(Minibatch(b), a, W2),
    ),
    Entry(
        DSGD_ATC,
        "smooth",
        Publication(
            "Chen, Sayed",
            "Diffusion adaptation strategies for distributed optimization and learning over "
            "networks",
            "IEEE Transactions on Signal Processing",
            2012,
        ),
        "smooth",
        "population",
        "doubly stochastic",
        SGD,
        lambda: DSGD_ATC(Minibatch(b), a, W2),
    ),
    Entry(
        DecentLaM,
        "smooth",
        Publication(
            "Yuan, Chen, Huang, Zhang, Pan, Xu, Yin",
            "DecentLaM: decentralized momentum SGD for large-batch deep training",
            "ICCV",
            2021,
        ),
        "smooth",
        "population",
        "symmetric",
        SGD,
        lambda: DecentLaM(Minibatch(b), 0.5, a / 2, W2),
    ),
    Entry(
        D2,
        "smooth",
        Publication(
            "Tang, Lian, Yan, Zhang, Liu",
            "D2: decentralized training over decentralized data",
            "ICML",
            2018,
        ),
        "smooth",
        "population",
        "symmetric",
        SGD,
        lambda: D2(Minibatch(b), a, W2),
    ),
    Entry(
        D_SPIDER_SFO,
        "smooth",
        Publication(
            "Pan, Liu, Wang",
            "D-SPIDER-SFO: a decentralized optimization algorithm with faster convergence rate "
            "for nonconvex problems",
            "AAAI",
            2020,
        ),
        "smooth",
        "finite sum",
        "symmetric",
        Work("K", SARAH.samples, SARAH.evaluations),
        lambda: D_SPIDER_SFO(b, q, a, W2),
    ),
    Entry(
        ExactDiffusion,
        "smooth",
        Publication(
            "Yuan, Ying, Zhao, Sayed",
            "Exact diffusion for distributed optimization and learning, part I: algorithm "
            "development",
            "IEEE Transactions on Signal Processing",
            2019,
        ),
        "smooth",
        "finite sum",
        "symmetric",
        FULL,
        lambda: ExactDiffusion(FullGradient(), a, LazyGossip(2)),
    ),
    Entry(
        EXTRA,
        "smooth",
        Publication(
            "Shi, Ling, Wu, Yin",
            "EXTRA: an exact first-order algorithm for decentralized consensus optimization",
            "SIAM Journal on Optimization",
            2015,
        ),
        "smooth",
        "finite sum",
        "symmetric",
        FULL,
        lambda: EXTRA(FullGradient(), a, W2),
    ),
)
