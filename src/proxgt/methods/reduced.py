"""Variance-reduced methods of one machine: the recursion of `centralized`, other estimators."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from proxgt.estimators import SAGA, SARAH, SVRG, Estimator
from proxgt.methods.centralized import Averaged, Plain, settle_single
from proxgt.methods.deepstorm import TwoBatchSTORM
from proxgt.records import record, static


@record
class ProxSARAH(Averaged):
    """SARAH gradients with an averaged proximal step.

    Pham, Nguyen, Phan, Tran-Dinh, "ProxSARAH: an efficient algorithmic framework for stochastic
    composite nonconvex optimization", Journal of Machine Learning Research 2020.

        t mod q = 0:  v_t = grad F(x_t), or the mean of `refresh` sample gradients
        otherwise:    v_t = v_{t-1} + g(x_t; xi_t) - g(x_{t-1}; xi_t)
        x_{t+1} = (1 - g) x_t + g prox_{a h}(x_t - a v_t)

    g = 1 is `ProxSpiderBoost`. The publication's inner loop of m steps is q = m + 1; its
    theory takes g = 1 / (L sqrt(w m)) and a = 2 / (4 + L g) with w = 3 (N - b) / (2 b (N - 1)),
    its experiments g from 0.75 to 0.95 and b = q = sqrt(N).

    Args:
        batch: b, samples of a recursive step.
        period: q, steps from one refresh to the next.
        step_size: a, a number or a function of the step counted from zero.
        averaging: g, in (0, 1].
        refresh: samples of a refresh; None takes all.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    averaging: float = 0.95
    refresh: int | None = static(default=None)
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "refresh=B"

    def __post_init__(self) -> None:
        settle_single(self, SARAH(self.batch, self.period, self.refresh))


@record
class ProxSpiderBoost(Plain):
    """SARAH (SPIDER) gradients with a plain proximal step.

    Wang, Ji, Zhou, Liang, Tarokh, "SpiderBoost and momentum: faster variance reduction
    algorithms", NeurIPS 2019.

        t mod q = 0:  v_t = grad F(x_t), or the mean of `refresh` sample gradients
        otherwise:    v_t = v_{t-1} + g(x_t; xi_t) - g(x_{t-1}; xi_t)
        x_{t+1} = prox_{a h}(x_t - a v_t)

    ProxGT-SR-E and -SR-O on one node. The publication takes, from memory, a = 1/(2L)
    and b = q = sqrt(N).

    Args:
        batch: b, samples of a recursive step.
        period: q, steps from one refresh to the next.
        step_size: a, a number or a function of the step counted from zero.
        refresh: samples of a refresh; None takes all.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    refresh: int | None = static(default=None)
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "refresh=B"

    def __post_init__(self) -> None:
        settle_single(self, SARAH(self.batch, self.period, self.refresh))


@record
class ProxSVRG(Plain):
    """Proximal descent along the gradients of `SVRG`.

    Reddi, Sra, Poczos, Smola, "Proximal stochastic methods for nonsmooth nonconvex finite-sum
    optimization", NeurIPS 2016.

        t mod q = 0:  s = x_t,  v_t = grad F(s)
        otherwise:    v_t = grad F(s) + g(x_t; xi_t) - g(s; xi_t)
        x_{t+1} = prox_{a h}(x_t - a v_t)

    The publication takes, from memory, a = 1/(3L), b = N^(2/3) and q = N^(1/3).

    Args:
        batch: b.
        period: q, steps from one snapshot to the next.
        step_size: a, a number or a function of the step counted from zero.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "ProxHSGD"

    def __post_init__(self) -> None:
        settle_single(self, SVRG(self.batch, self.period))


@record
class ProxSAGA(Plain):
    """Proximal descent along the gradients of `SAGA`, with two independent index sets.

    Reddi, Sra, Poczos, Smola, "Proximal stochastic methods for nonsmooth nonconvex finite-sum
    optimization", NeurIPS 2016.

        v_t = (1/b) sum_{s in I} (grad G_s(x_t) - T_s) + mean_j T_j
        x_{t+1} = prox_{a h}(x_t - a v_t),     T_s = grad G_s(x_t) for s in J

    The table holds N x p numbers. The publication takes, from memory, a = 1/(5L) and
    b = N^(2/3).

    Args:
        batch: b, the size of I and of J.
        step_size: a, a number or a function of the step counted from zero.
    """

    batch: int = static()
    step_size: Any
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "ProxHSGD"

    def __post_init__(self) -> None:
        settle_single(self, SAGA(self.batch))


@record
class ProxHSGD(Averaged):
    """The hybrid of SARAH and SGD with an averaged proximal step.

    Tran-Dinh, Pham, Phan, Nguyen, "A hybrid stochastic optimization framework for composite
    nonconvex optimization", Mathematical Programming 2022.

        v_t = (1 - m) (v_{t-1} + g(x_t; xi_t) - g(x_{t-1}; xi_t)) + m g(x_t; zeta_t)
        x_{t+1} = (1 - g) x_t + g prox_{a h}(x_t - a v_t)

    with xi_t and zeta_t independent and m the `momentum`; the publication writes 1 - m for
    m. Public code averages with the point before the prox, which the publication does not.
    Never refreshed, and at constant m it hovers at a noise floor below that of `ProxSGD`.

    Args:
        batch: b, the size of xi_t and of zeta_t.
        momentum: m in [0, 1], a number or a function of the step counted from zero.
        step_size: a, a number or a function of the step counted from zero.
        averaging: g, in (0, 1].
        first: samples of v_0; by default b.
    """

    batch: int = static()
    momentum: Any
    step_size: Any
    averaging: float = 0.95
    first: int | None = static(default=None)
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields

    def __post_init__(self) -> None:
        settle_single(self, TwoBatchSTORM(self.batch, self.momentum, self.first))
