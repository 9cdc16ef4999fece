"""The paper's own."""

from __future__ import annotations

from proxgt.estimators import FullGradient
from proxgt.methods.entries.entry import (
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
from proxgt.methods.proxgt import ProxGT, ProxGT_SA, ProxGT_SR_E, ProxGT_SR_O

_PROXGT = Publication(
    "Xin, Das, Khan, Kar",
    "A stochastic proximal gradient framework for decentralized non-convex composite optimization",
    "arXiv",
    2021,
)

ENTRIES = (
    Entry(
        ProxGT,
        "proxgt",
        _PROXGT,
        "composite",
        "finite sum",
        "doubly stochastic",
        TRACKED_FULL,
        lambda: ProxGT(FullGradient(), a, W2),
    ),
    Entry(
        ProxGT_SA,
        "proxgt",
        _PROXGT,
        "composite",
        "population",
        "doubly stochastic",
        TRACKED_SGD,
        lambda: ProxGT_SA(b, a, W2),
    ),
    Entry(
        ProxGT_SR_O,
        "proxgt",
        _PROXGT,
        "composite",
        "population",
        "doubly stochastic",
        Work("2K", "(B + (q-1) b)/q", "(B + 2(q-1) b)/q"),
        lambda: ProxGT_SR_O(b, q, B, a, W2),
    ),
    Entry(
        ProxGT_SR_E,
        "proxgt",
        _PROXGT,
        "composite",
        "finite sum",
        "doubly stochastic",
        TRACKED_SARAH,
        lambda: ProxGT_SR_E(b, q, a, W2),
    ),
)
