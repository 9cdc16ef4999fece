"""Eq. (11), Lemmas 4-8 and eq. (96) as inequalities on the paths of one run of many seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from proxgt.estimators import Minibatch
from proxgt.problems import Problem
from proxgt.reproduce.findings import Interval
from proxgt.theory import Constants, Inequality, Trajectory, lemmas

ROUNDING = 1e-12  # relative, in double precision
ON_EVERY_PATH = ("eq. (11)", "Lemma 4", "Lemma 5", "Lemma 6")  # the others are of expectations


def statements(
    path: Trajectory, known: Constants, nu: float, P: np.ndarray, version: str
) -> list[Inequality]:
    """What the paper states about a path, or about expectations of both sides over paths."""
    L, mss, zeta = known.smoothness.value, known.mean_squared_smoothness.value, known.zeta.value
    once = isinstance(path.method.estimator, Minibatch)
    found = [
        lemmas.differences(path, version),
        lemmas.variance(path, nu, mss, version),
        lemmas.tracking(path, nu, zeta, L if once else mss, version),
    ]
    if version == "paper":  # and is right as printed
        relative = lemmas.tracked(path) / float(abs(path.v).max())
        found += [
            Inequality("eq. (11)", relative, ROUNDING),
            lemmas.descent(path, L, path.start - known.gap.upper),
            lemmas.consensus(path),
        ]
        found += [cross_term(path, P, nu)] if once else []
    return found


def paths(made: Trajectory) -> Iterator[Trajectory]:
    """Every seed by itself: Lemmas 4-6 hold on every path."""
    names = ("x", "y", "v", "z", "gradients", "mappings")
    for seed in range(len(made.x)):
        one = slice(seed, seed + 1)
        yield dataclasses.replace(made, **{name: getattr(made, name)[one] for name in names})


def largest_nu(made: Trajectory, problem: Problem) -> float:
    """The root mean square over nodes of the largest nu_i on any path; 0 of real data.

    E||grad G_i - grad f_i||^2 = nu^2 + curvature_noise^2 ||x_i||^2, see `tasks.noisy_quadratic`.
    No statement about SR-E contains nu.
    """
    if problem.exact:
        return 0.0
    sampler: Any = problem.sampler  # pyright: ignore[reportAttributeAccessIssue]
    squares = np.sum(made.x[:, :-1] ** 2, axis=3).max(axis=(0, 1))
    return float(np.sqrt(np.mean(sampler.nu**2 + sampler.curvature**2 * squares)))


def cross_term(path: Trajectory, P: np.ndarray, nu: float) -> Inequality:
    """Eq. (96), a step in the proof of Lemma 8(a), averaged over t on one path: C_t <= nu^2/b.

    C_t = <P y_t, (P - J)(grad f(x_{t-1}) - v_{t-1})>
    """
    rest = P - 1 / len(P)
    errors = (path.gradients - path.v)[:, :-1]
    left = np.einsum("ij,stjp->stip", P, path.y[:, 1:-1])
    right = np.einsum("ij,stjp->stip", rest, errors)
    batch = path.method.estimator.batch  # pyright: ignore[reportAttributeAccessIssue]
    mean = np.sum(left * right) / (path.steps - 1)
    return Inequality("eq. (96)", float(mean), nu**2 / batch)


def ratio(found: Sequence[Inequality]) -> Interval:
    """lhs/rhs of one statement on all paths: of the worst one, or of both means."""
    if found[0].name in ON_EVERY_PATH:
        return Interval.of(np.max([one.tightness for one in found]))  # NaN if one is
    lhs, rhs = np.array([(one.lhs, one.rhs) for one in found]).T
    of_means = lhs.mean() / rhs.mean()
    # the interval is that of the ratio linearized in both means
    return Interval.of(of_means + (lhs - of_means * rhs) / rhs.mean())
