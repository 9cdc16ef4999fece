"""One contract for every method of the registry: counts, precision, compiles, refusals, resume."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import proxgt as pg
from helpers import regression, square_loss
from proxgt import cli
from proxgt.consensus import Consensus
from proxgt.engines.local import LocalEngine
from proxgt.engines.mixing import local_mixing
from proxgt.methods import registry
from proxgt.methods.base import Method, Schedule, prepared
from proxgt.methods.entries import ENTRIES
from proxgt.methods.entries.entry import FAMILIES, GRAPHS, PROBLEMS, RISKS, SYMBOLS

NODES, M, P = 5, 8, 4
A, B = regression(NODES, M, P)
X0 = np.full(P, 0.4)
ONE, RING = pg.Network.complete(1), pg.Network.ring(NODES)
CYCLE = pg.Network.directed_ring(NODES)
# Node 0 hears more than it tells: no equal weights are doubly stochastic.
LOPSIDED = pg.Network(nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 0), (3, 0)]))
REGULARIZER = {
    "composite": pg.L1(0.1),
    "smooth": pg.Zero(),
    "set": pg.L1Ball(2.0),
    "compact set": pg.L1Ball(2.0),
}
STEPS, EVERY = 60, 20

every_method = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


@cache
def setting(h, single, scale=1.0):
    """A problem with this h, and the network for it."""
    risk = pg.EmpiricalRisk(square_loss, (scale * A, B), REGULARIZER[h], x0=X0, smoothness=5.0)
    return (risk.pooled(), ONE) if single else (risk, RING)


def ours(entry, scale=1.0):
    return setting(entry.problem, entry.graph == "one node", scale)


def run(entry, method=None, problem=None, network=None, **options):
    usual, ring = ours(entry)
    options = {"steps": STEPS, "record_every": EVERY, "metric_step": 0.05} | options
    return pg.solve(problem or usual, network or ring, method or entry.example(), **options)


@cache
def first_run(entry):
    return run(entry)


# the table -----------------------------------------------------------------------------------


def test_entries_are_complete_and_public_names():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names) == len(registry)
    for entry in ENTRIES:
        assert entry.family in FAMILIES
        assert entry.problem in PROBLEMS
        assert entry.risk in RISKS
        assert entry.graph in GRAPHS
        assert 1950 < entry.source.year < 2030
        assert isinstance(entry.example(), Method)
        assert entry.name in registry.describe(entry.name)
        assert entry.source.title in registry.describe(entry.name)


def test_every_public_method_is_in_the_registry():
    """And is exported under the name it has there."""
    public = {name: getattr(pg, name) for name in pg.__all__}
    classes = {
        name
        for name, part in public.items()
        if isinstance(part, type) and issubclass(part, Method) and part is not Method
    }
    assert classes - registry.keys() <= {"DEEPSTORM"}  # in it as v1 and v2
    for name, entry in registry.items():
        assert public.get(name) is entry.make, name


def test_the_page_of_methods_is_generated():
    page = Path(__file__).parent.parent / "docs" / "methods.md"
    assert page.read_text() == registry.markdown()


def test_the_readme_has_the_table_of_methods():
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    shown = readme.partition("<!-- methods -->\n")[2].partition("<!-- /methods -->")[0]
    assert shown.strip() == registry.readme_table().strip()


def test_the_registry_is_a_mapping_in_the_package():
    assert pg.methods.registry is registry
    assert list(registry) == [entry.name for entry in ENTRIES]
    made = registry["GT_SARAH"]
    assert (made.make, made.source.year, made.work.rounds) == (pg.GT_SARAH, 2022, "2K")
    assert {row.method for row in registry.rows("centralized")} >= {"FISTA", "ProxHSGD"}


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'GT_SARAH'"):
        registry.describe("GT_SARA")


def test_the_command_line_lists_every_method(capsys):
    assert cli.main(["list", "methods"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for row, entry in zip(registry.rows(), ENTRIES, strict=True):
        costs = f"{row.rounds} rounds, {row.samples} samples, {row.evaluations} evaluations"
        facts = f"h: {row.h}; {row.risk}; {row.network} {costs}"
        assert f"{entry.name} {entry.source} {facts}" in shown


# the contract --------------------------------------------------------------------------------


@every_method
def test_descends(entry):
    result = first_run(entry)
    assert result.status == "step limit"
    first, last = result.history[0], result.history[-1]
    assert last.objective < first.objective
    assert last.stationarity < first.stationarity / 2


@every_method
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keeps_shape_and_dtype(entry, dtype):
    """A step gives back a state like the one it was given, floats all in the run's precision."""
    problem, network = ours(entry)
    method = prepared(entry.example(), network)
    with jax.enable_x64(dtype == "float64"):
        oracle = problem.oracle(problem.spec(), dtype)
        mix = local_mixing(network, method.consensus, dtype)
        keys = jax.random.split(jax.random.key(0), network.nodes)

        def one_step(method, oracle, mix, keys, state):
            return method.step(oracle, mix, state, method.draw(oracle, keys))

        x = jnp.tile(jnp.asarray(X0, dtype), (network.nodes, 1))
        before = method.init(oracle, mix, x)
        after = jax.eval_shape(one_step, method, oracle, mix, keys, before)
    shapes = lambda state: [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)]
    assert shapes(before) == shapes(after)
    assert (after.x.shape, after.x.dtype) == ((network.nodes, P), dtype)
    floats = {str(d) for _, d in shapes(after) if jnp.issubdtype(d, jnp.floating)}
    assert floats == {dtype}


@every_method
def test_a_second_run_compiles_nothing(entry, compiled):
    """With other data and another step size, as a search over step sizes makes it."""
    first_run(entry)
    method = entry.example()
    if not isinstance(method.step_size, Schedule):
        method = with_step(method, 0.7 * method.step_size)
    before = compiled()
    problem, _ = ours(entry, scale=0.9)
    other = run(entry, method, problem, seed=4)
    assert compiled() == before
    assert not np.array_equal(other.x, first_run(entry).x)


def with_step(method, step_size):
    return dataclasses.replace(method, step_size=step_size)


@every_method
def test_resumed_equals_uninterrupted(entry, tmp_path):
    whole = first_run(entry)
    stop = lambda snapshot: snapshot.row.step == EVERY
    part = run(entry, checkpoint=tmp_path, callbacks=[stop])
    assert part.steps == EVERY
    resumed = run(entry, checkpoint=tmp_path, resume=True)
    assert np.array_equal(resumed.x, whole.x)
    assert np.array_equal(resumed.output, whole.output)
    for column in set(pg.History.columns) - {"seconds", "communication_seconds"}:
        assert np.array_equal(resumed.history[column], whole.history[column]), column


@every_method
@pytest.mark.parametrize("halving", [False, True])
def test_its_step_size_can_be_searched(entry, halving):
    """Of a method with a schedule, its scale; far too small a step is not what is found.

    By stationarity at the mean: the duals of SPPDM take more steps than these to bring nodes
    together, and a step that moves nothing leaves them together.
    """
    problem, _ = setting(entry.problem, False)
    made = entry.example()
    if isinstance(schedule := made.step_size, Schedule):
        make, grid = lambda a: with_step(made, lambda t: a * schedule(t)), [1e-3, 1.0]
    else:
        make, grid = made, [1e-3 * made.step_size, made.step_size]
    options = {"budget": {"steps": STEPS}, "records": STEPS // EVERY, "metric_step": 0.05}
    options |= {"column": "stationarity", "halving": halving, "extend": 0}
    tuning = pg.tune(problem, RING, make, grid, **options)
    assert tuning.step_size == grid[1]
    assert max(trial.steps for trial in tuning.trials) == STEPS


class Counting:
    """An oracle that counts, per node, samples first used and gradients evaluated."""

    def __init__(self, oracle, held):
        self.oracle, self.held, self.used = oracle, held, []
        self.evaluated = self.passes = 0

    def __getattr__(self, name):
        return getattr(self.oracle, name)

    def gradients(self, x, draw):
        self.note(draw)
        return self.oracle.gradients(x, draw)

    def sample_gradients(self, x, draw):
        self.note(draw)
        return self.oracle.sample_gradients(x, draw)

    def note(self, draw):
        if not any(draw is earlier for earlier in self.used):
            self.used.append(draw)
        self.evaluated += draw.shape[1]

    def full_gradients(self, x):
        self.passes += 1
        self.evaluated += self.held
        return self.oracle.full_gradients(x)

    @property
    def sampled(self):
        return self.passes * self.held + sum(draw.shape[1] for draw in self.used)

    def table_is_counted_once(self):
        """A table of all sample gradients has their mean in it: one pass, not two."""
        if self.used and self.passes:
            self.passes -= 1
            self.evaluated -= self.held


def counting_mixes(method, network, sent):
    """The method's consensus as plain products, each noting its rounds."""

    def mix(one):
        matrix = jnp.asarray(one.matrix(network), jnp.float32)
        return lambda rows: sent.append(one.rounds) or matrix @ rows

    is_leaf = lambda node: isinstance(node, Consensus)
    return jax.tree.map(mix, method.consensus, is_leaf=is_leaf)


@every_method
def test_declared_counts_are_what_the_steps_really_do(entry):
    problem, network = ours(entry)
    method, steps, sent = prepared(entry.example(), network), SYMBOLS["q"] + 2, []
    counting = Counting(problem.oracle(problem.spec(), "float32"), int(problem.samples_per_node))
    mixes = counting_mixes(method, network, sent)
    with jax.disable_jit():
        state = method.init(
            counting, mixes, jnp.tile(jnp.asarray(X0, jnp.float32), (network.nodes, 1))
        )
        counting.table_is_counted_once()
        sent.clear()  # at the start only counts of neighbours are exchanged
        for t in range(steps):
            keys = jax.random.split(jax.random.key(t), network.nodes)
            state = method.step(counting, mixes, state, method.draw(counting, keys))
    expected = (counting.sampled, counting.evaluated, sum(sent))
    assert method.cost(problem, steps)[:3] == expected


@every_method
def test_the_table_has_the_cost_of_a_step_in_the_long_run(entry):
    problem, network = ours(entry)
    method, q = prepared(entry.example(), network), SYMBOLS["q"]
    begin, end = (np.array(method.cost(problem, steps)[:3]) for steps in (20 * q, 30 * q))
    names = SYMBOLS | {"m": problem.samples_per_node}
    samples, gradients, rounds = (end - begin) / (10 * q)
    work = entry.work
    assert (value(work.rounds, names), value(work.samples, names)) == (rounds, samples)
    assert value(work.evaluations, names) == gradients


def value(formula, names):
    """A formula such as "(m + 2(q-1) b)/q"."""
    python = re.sub(r"(?<=[\w)])\s*(?=\()|(?<=\))\s*(?=\w)|(?<=\d)(?=[A-Za-z])", "*", formula)
    python = re.sub(r"(?<=[\w)]) (?=[A-Za-z(])", "*", python)
    return eval(python, {}, dict(names))


# refusals --------------------------------------------------------------------------------------


@pytest.fixture
def nothing_may_start(monkeypatch):
    """A run that gets as far as its first compile fails the test."""

    def started(*_, **__):
        raise AssertionError("the engine started before the refusal")

    monkeypatch.setattr(LocalEngine, "start", started)


def refused(entry, match, **options):
    """In a message that begins with the name of its class."""
    with pytest.raises(ValueError, match=rf"^{type(entry.example()).__name__}\b.*({match})"):
        run(entry, **options)


@every_method
def test_refuses_a_regularizer_it_cannot_take(entry, nothing_may_start):
    if entry.problem == "composite":
        pytest.skip("takes any")
    risk, _ = setting("composite", False)
    refused(entry, "regularizer", problem=risk)


@every_method
def test_refuses_a_network_it_cannot_take(entry, nothing_may_start):
    if entry.graph == "one node":
        risk, _ = setting(entry.problem, False)
        refused(entry, r"one node.*pooled\(\)", problem=risk, network=RING)
    elif entry.graph in ("symmetric", "undirected"):
        refused(entry, "symmetric|undirected", network=CYCLE)
    else:
        pytest.skip("takes any that can be made")


@every_method
def test_takes_the_digraphs_it_says(entry):
    if entry.graph not in ("digraph", "doubly stochastic"):
        pytest.skip("takes none")
    network = LOPSIDED if entry.graph == "digraph" else CYCLE
    problem, _ = ours(entry)
    prepared(entry.example(), network).check(problem, network)


def population():
    return pg.PopulationRisk(
        square_loss,
        lambda key, node: (jax.random.normal(key, (P,)), 1.0),
        NODES,
        x0=X0,
        smoothness=5.0,
    )


@every_method
def test_refuses_a_population_if_it_needs_exact_gradients(entry, nothing_may_start):
    risk = population()
    risk.regularizer = REGULARIZER[entry.problem]
    single = entry.graph == "one node"
    problem, network = (risk.pooled(), ONE) if single else (risk, RING)
    if entry.risk == "finite sum":
        refused(entry, "exact gradient", problem=problem, network=network)
    else:
        prepared(entry.example(), network).check(problem, network)
