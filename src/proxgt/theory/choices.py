"""One method with one kind of consensus at its cheapest, and the cheapest of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from proxgt.consensus import Consensus
from proxgt.methods import ProxGT, ProxGT_SA, ProxGT_SR_E, ProxGT_SR_O
from proxgt.theory.bounds import Bound, Coefficients, Scales, bound, conditions
from proxgt.theory.search import SLACK, Parameters, Price, Usage
from proxgt.theory.timing import StepTime


@dataclass(frozen=True)
class Choice:
    """One method with one kind of consensus, at its cheapest."""

    parameters: Parameters
    limits: tuple[Any, ...]  # the step-size conditions, `bounds.Condition`
    bound: Bound | None  # of a guaranteed plan
    seconds: float | None
    price: float

    @property
    def name(self) -> str:
        """SA, SR-O or SR-E."""
        return self.parameters.method

    @property
    def consensus(self) -> Consensus:
        """Gossip(K) or Chebyshev(K)."""
        return self.parameters.mixing.consensus

    @property
    def binding(self) -> str:
        """The condition that limits the step size."""
        return min(self.limits, key=lambda limit: limit.limit).name

    @property
    def method(self) -> ProxGT:
        """The method, ready for `solve`."""
        p = self.parameters
        if p.method == "SA":
            return ProxGT_SA(p.batch, p.step_size, self.consensus)
        assert p.period is not None
        if p.method == "SR-E":
            return ProxGT_SR_E(p.batch, p.period, p.step_size, self.consensus)
        assert p.refresh is not None
        return ProxGT_SR_O(p.batch, p.period, p.refresh, p.step_size, self.consensus)


def cheapest(choices: tuple[Choice, ...], second: Price) -> Choice:
    """The least price; what differs by 2 % is settled by the second price."""
    limit = SLACK * min(choice.price for choice in choices)
    near = [choice for choice in choices if choice.price <= limit]
    return min(near, key=lambda choice: float(np.asarray(second(_usage(choice.parameters)))))


def _usage(p: Parameters) -> Usage:
    return Usage(p.steps, p.samples, p.gradients, p.rounds, p.mixing)


def choice_of(
    p: Parameters,
    scales: Scales,
    c: Coefficients,
    guarantee: bool,
    clock: StepTime | None,
    price: Price,
) -> Choice:
    """The choice with its bound, limits, seconds and price."""
    usage = _usage(p)
    promised = None
    if guarantee:
        promised = bound(
            p.method,
            scales,
            steps=p.steps,
            step_size=p.step_size,
            contraction=p.mixing.contraction,
            batch=p.batch,
            period=p.period,
            refresh=p.refresh,
            non_negative=p.mixing.non_negative,
        )
    seconds = None if clock is None else float(clock(usage))
    limits = conditions(c, p.method, scales, p.mixing.contraction, p.batch, p.period)
    return Choice(p, limits, promised, seconds, float(np.asarray(price(usage))))
