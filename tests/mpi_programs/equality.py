"""Every case on MPI and, at rank 0, on one machine."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from cases import NODES, RING, RUN, X1, P, ragged, risk
from common import differences, everywhere, say

import proxgt as pg
from helpers import square_loss
from proxgt.engines.messages import world
from proxgt.networks import links

DIRECTED = pg.Network.directed_exponential(NODES)


def prox_gt(estimator, consensus=pg.Gossip(3)):
    return pg.ProxGT(estimator, 0.05, consensus)


def population():
    def sampler(key, node):
        a = jax.random.normal(key, (P,))
        return a, jnp.sum(a) + 0.1 * node

    return pg.PopulationRisk(square_loss, sampler, NODES, x0=X1, evaluation=20, smoothness=3.0)


def stream():
    def factory(node):
        rng = np.random.default_rng(node)
        while True:
            a = rng.standard_normal(P)
            yield a, a.sum() + 0.1 * node

    return pg.PopulationRisk(square_loss, pg.Stream(factory), NODES, x0=X1, evaluation=20)


def flaky(network):
    return links.unreliable(network, 0.3, [links.Outage(2, 5, 15)])


CASES = {
    "full gradient": (risk, RING, prox_gt(pg.FullGradient())),
    "minibatch": (risk, RING, prox_gt(pg.Minibatch(3))),
    "SARAH": (risk, RING, prox_gt(pg.SARAH(3, 4))),
    "SARAH, online": (risk, RING, prox_gt(pg.SARAH(3, 4, 6))),
    "STORM": (risk, RING, prox_gt(pg.STORM(3, 0.1, 7))),
    "SAGA": (risk, RING, prox_gt(pg.SAGA(3))),
    "Chebyshev": (risk, pg.Network.grid(7, 1), prox_gt(pg.SARAH(3, 4), pg.Chebyshev(4))),
    "directed": (risk, DIRECTED, prox_gt(pg.SARAH(3, 4), pg.Gossip(2))),
    "ragged": (ragged, RING, prox_gt(pg.SAGA(2))),
    "population": (population, RING, prox_gt(pg.SARAH(3, 4, 6))),
    "stream": (stream, RING, prox_gt(pg.Minibatch(3))),
    "failing links": (risk, flaky(RING), prox_gt(pg.SARAH(3, 4))),
    "varying graph": (
        risk,
        links.varying([RING, pg.Network.star(NODES)]),
        prox_gt(pg.Minibatch(3)),
    ),
    "metric at nodes": (risk, RING, prox_gt(pg.FullGradient()), {"metric_at": "nodes"}),
    "estimated L": (lambda: risk(smoothness=None), RING, prox_gt(pg.FullGradient())),
}
SOME = ("Chebyshev", "ragged", "failing links")


def compare(name, problem, network, how, options=None):
    run = RUN | (options or {})
    result = pg.solve(problem(), network, how, engine="mpi", **run)
    agreed = everywhere([result.mean.tolist(), result.status])
    held = everywhere(len(result.x))
    assert all(one == agreed[0] for one in agreed)
    assert held[0] == NODES
    assert world().size == 1 or sum(held[1:]) < NODES
    if world().rank == 0:
        say(name, **differences(result, pg.solve(problem(), network, how, **run)))


def registered():
    """Every method of the registry that runs on more than one node."""
    from proxgt.methods.entries import ENTRIES

    regularizers = {"composite": pg.L1(0.1), "smooth": pg.Zero()}
    for entry in ENTRIES:
        if entry.graph != "one node":
            h = regularizers.get(entry.problem, pg.L1Ball(2.0))
            yield entry.name, (lambda h=h: risk(h), RING, entry.example())


def main():
    wanted = sys.argv[1]
    if wanted == "registry":
        for name, case in registered():
            compare(name, *case)
        return
    for name, case in CASES.items():
        if wanted == "all" or name in SOME:
            compare(name, *case)


main()
