"""Configs: what they build, and that whatever is wrong in one is said in one line."""

import textwrap

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import proxgt as pg
from helpers import regression
from proxgt import config, tasks
from proxgt.config import catalog
from proxgt.config.errors import ConfigError

A, B = regression(4, 6, 3)
BASE = """
[problem]
name = "least_squares"
dataset = "wine"

[regularizer]
name = "L1"
strength = 0.1

[network]
name = "ring"
nodes = 4

[method]
name = "ProxGT_SA"
batch = 2
step_size = 0.1

[run]
steps = 20
"""


def read(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(textwrap.dedent(text))
    return config.read(path)


def build(tmp_path, text, *assignments):
    given = read(tmp_path, text)
    for assignment in assignments:
        config.override(given, assignment)
    with config.importable(given["directory"]):
        return config.build(given)


@pytest.fixture
def module(tmp_path, request):
    """A module of the user's own next to the config, under a name no other test has."""
    name = f"mine_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(
        textwrap.dedent("""
        import jax.numpy as jnp, jax
        import proxgt as pg

        def loss(x, sample):
            r = jnp.dot(sample["a"], x) - sample["b"]
            return r**2 / (1 + r**2)

        def pair_loss(x, sample):
            a, b = sample
            return (jnp.dot(a, x) - b) ** 2

        def drawn_loss(x, sample):
            return jnp.sum((x["w"] - sample) ** 2) + x["b"] ** 2

        def sampler(key, node):
            return jax.random.normal(key, (3,)) + node

        def schedule(t):
            return 0.1 / (1 + 0.01 * t)

        class Mine:
            def __init__(self, weight: float = 1.0): self.weight = weight
            def value(self, x): return self.weight * jnp.sum(jnp.abs(x))
            def prox(self, v, step): return v - jnp.clip(v, -step * self.weight, step * self.weight)

        def problem(nodes: int, regularizer=pg.Zero(), width: int = 3):
            data = jnp.ones((nodes, 2, width)), jnp.ones((nodes, 2))
            return pg.EmpiricalRisk(pair_loss, data, regularizer, x0=jnp.zeros(width))

        graph = pg.Network.star(6)
        ring = 3
        """)
    )
    return name


# What a config builds ----------------------------------------------------------------------


def test_a_config_builds_what_the_python_call_does(tmp_path):
    job = build(
        tmp_path,
        """
        [problem]
        name = "logistic"
        dataset = "breast_cancer"
        split = "label"
        penalty = 0.1
        seed = 3
        [regularizer]
        name = "ElasticNet"
        l1 = 0.1
        l2 = 1
        [network]
        name = "geometric"
        n = 8
        r = 0.6
        weights = "lazy-metropolis"
        [method]
        name = "ProxGT"
        step_size = 0.3
        estimator = {name = "STORM", batch = 4, momentum = 0.1}
        consensus = {name = "Chebyshev", rounds = 3}
        [run]
        steps = 77
        dtype = "float64"
        """,
    )
    problem = tasks.from_dataset(
        "logistic",
        "breast_cancer",
        8,
        "label",
        seed=3,
        penalty=0.1,
        regularizer=pg.ElasticNet(0.1, 1),
    )
    network = pg.Network.geometric(8, 0.6, weights="lazy-metropolis")
    x = np.linspace(-1, 1, 30)
    assert job.problem.objective(x) == problem.objective(x)
    assert np.array_equal(job.network.W, network.W)
    assert job.method.estimator.batch == 4
    assert job.method.estimator.momentum == 0.1
    assert job.method.consensus == pg.Chebyshev(3)
    assert job.settings["steps"] == 77
    assert job.settings["dtype"] == "float64"
    assert job.checkpoint


def test_the_regularizer_table_may_be_left_out(tmp_path):
    given = read(tmp_path, BASE)
    del given["regularizer"]
    assert isinstance(config.build(given).problem.regularizer, pg.Zero)


def test_every_named_network_can_be_built(tmp_path):
    known = catalog.catalog("networks")
    needs = {"r": 0.7, "p": 0.6, "n": 16, "rows": 16, "file": None, "W": None}
    for name, entry in known.items():
        required = {k: needs[k] for k, p in entry.parameters.items() if p.default is p.empty}
        if None in required.values():
            continue
        given = read(tmp_path, BASE) | {"network": {"name": name, **required}}
        assert config.build(given).network.nodes == 16, name


def test_rounds_auto_is_settled_when_built(tmp_path):
    job = build(tmp_path, BASE, 'method.consensus={name="Chebyshev", rounds="auto"}')
    assert isinstance(job.method.consensus.rounds, int)


def test_blocks_of_regularizers_go_by_the_params(tmp_path):
    job = build(
        tmp_path,
        BASE,
        'problem={name="matrix_factorization", rank=2, split="contiguous", dataset="wine"}',
        'regularizer={parts = {U={name="L1", strength=0.1}, V={name="NonNegative"}}}',
    )
    parts = job.problem.regularizer.parts
    assert isinstance(parts["U"], pg.L1)
    assert isinstance(parts["V"], pg.NonNegative)


def test_blocks_may_be_an_array_of_tables(tmp_path):
    part = '{w = {name="L1", strength=0.1}, b = {name="Zero"}}'
    job = build(
        tmp_path,
        BASE,
        'problem={name="mlp_classifier", hidden=[3], dataset="iris"}',
        f"regularizer={{parts = [{part}, {part}]}}",
    )
    assert isinstance(job.problem.regularizer.parts[1]["w"], pg.L1)


@pytest.mark.parametrize("names", [("a", "b"), ()])
def test_a_loss_of_ones_own_on_data_from_a_file(tmp_path, module, names):
    if names:
        np.savez(tmp_path / "data.npz", a=A, b=B)
    else:
        np.savez(tmp_path / "data.npz", A, B)
    loss = f"{module}:{'loss' if names else 'pair_loss'}"
    job = build(tmp_path, BASE, f'problem={{data="data.npz", loss="{loss}", shape=3}}')
    x = np.array([0.3, -1.0, 2.0])
    r = A @ x - B
    F = (r**2 / (1 + r**2)).mean() if names else (r**2).mean()
    assert job.problem.objective(x) == pytest.approx(F + 0.1 * np.abs(x).sum(), rel=1e-5)
    assert np.array_equal(job.problem.x0, np.zeros(3))


def test_samples_may_say_which_node_holds_them(tmp_path, module):
    owner = np.array([0, 2, 1, 3, 3, 1, 0, 0])
    a, b = A.reshape(-1, 3)[:8], B.reshape(-1)[:8]
    np.savez(tmp_path / "data.npz", a=a, b=b, node=owner)
    job = build(tmp_path, BASE, f'problem={{data="data.npz", loss="{module}:loss", shape=3}}')
    assert job.problem.data.count.tolist() == [3, 2, 1, 2]
    assert np.array_equal(job.problem.data.node(3)["a"], a[[3, 4]])


def test_samples_may_be_split_and_a_start_read_from_a_file(tmp_path):
    np.savez(tmp_path / "data.npz", A.reshape(-1, 3), np.sign(B).reshape(-1))
    np.save(tmp_path / "start.npy", np.ones(3))
    problem = '{data="data.npz", loss="logistic", split="label", x0="start.npy"}'
    job = build(tmp_path, BASE, f"problem={problem}")
    assert np.array_equal(job.problem.x0, np.ones(3))
    labels = [set(job.problem.data.node(i)[1]) for i in range(4)]
    assert any(len(held) == 1 for held in labels)


def test_a_built_in_loss_takes_arguments(tmp_path):
    loss = '{name="tukey", scale=2.5}'
    job = build(
        tmp_path, BASE, f'problem={{name="empirical", data="diabetes", loss={loss}, shape=10}}'
    )
    assert job.problem.loss == tasks.TukeyLoss(2.5)


def test_a_population_of_ones_own_with_named_params(tmp_path, module):
    job = build(
        tmp_path,
        BASE,
        f'problem={{sampler="{module}:sampler", loss="{module}:drawn_loss", '
        "x0={w=[1, 2, 3], b=0.5}, evaluation=10}",
    )
    assert isinstance(job.problem, pg.PopulationRisk)
    assert job.problem.nodes == 4
    assert job.problem.x0["w"].tolist() == [1, 2, 3]


def test_parts_of_ones_own(tmp_path, module):
    job = build(
        tmp_path,
        BASE,
        f'problem={{name="{module}:problem", width=5}}',
        f'regularizer={{name="{module}:Mine", weight=2.0}}',
        f'network={{name="{module}:graph"}}',
        f'method.step_size="{module}:schedule"',
    )
    assert job.problem.nodes == 6
    assert job.problem.objective(np.ones(5)) == pytest.approx(16 + 10)
    assert job.method.step_size(100) == pytest.approx(0.05)


def test_graphs_from_files(tmp_path):
    (tmp_path / "edges.txt").write_text("# a path\n10 2\n2 0\n")
    job = build(tmp_path, BASE, 'network={file="edges.txt"}')
    assert job.network.labels == ("0", "2", "10")
    assert job.network.degrees.tolist() == [1, 2, 1]
    nx.write_graphml(nx.cycle_graph(5, create_using=nx.DiGraph), tmp_path / "ring.graphml")
    job = build(tmp_path, BASE, 'network={file="ring.graphml"}')
    assert job.network.directed
    job = build(tmp_path, BASE, 'network={file="ring.graphml", directed=false}')
    assert not job.network.directed


def test_weights_from_files(tmp_path):
    W = pg.Network.star(5).W
    np.save(tmp_path / "W.npy", W)
    np.savez(tmp_path / "W.npz", W=W)
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(W))
    for file in ("W.npy", "W.npz", "sparse.npz"):
        job = build(tmp_path, BASE, f'network={{W="{file}"}}')
        assert np.array_equal(job.network.W, W), file


# Overrides, and the config written back ----------------------------------------------------


def test_overrides_are_toml_or_else_strings():
    given = {}
    for assignment in ("a.x=1", "a.y=[1, 2]", "a.z=true", "a.w=some text", 'b.c.d="1"', "e={f=2}"):
        config.override(given, assignment)
    assert given == {
        "a": {"x": 1, "y": [1, 2], "z": True, "w": "some text"},
        "b": {"c": {"d": "1"}},
        "e": {"f": 2},
    }


@pytest.mark.parametrize("wrong", ["steps", "=3", "run.=3", ".steps=3"])
def test_an_override_must_name_a_key(wrong):
    with pytest.raises(ConfigError, match=r"must read table\.key=value"):
        config.override({}, wrong)


def test_an_override_that_begins_like_toml_must_be_toml():
    with pytest.raises(ConfigError, match=r"^regularizer: not valid TOML, \{strength=\.1\}"):
        config.override({}, "regularizer={strength=.1}")


def test_an_override_does_not_go_through_a_value():
    with pytest.raises(ConfigError, match=r"run\.steps: not a table"):
        config.override({"run": {"steps": 3}}, "run.steps.more=1")


def test_a_built_config_written_and_read_builds_the_same(tmp_path):
    job = build(tmp_path, BASE, "run.tolerance=1e-7")
    again = config.build(read(tmp_path, config.dump(job.config)))
    assert again.config == job.config
    assert again.settings == job.settings
    assert job.config["problem"]["concentration"] == 0.5  # a default, written out
    assert job.config["method"]["consensus"] == {"name": "Gossip", "rounds": 1}
    assert job.config["network"]["n"] == 4
    assert "nodes" not in job.config["problem"]


def test_building_leaves_the_given_config_alone(tmp_path):
    given = read(tmp_path, BASE)
    config.build(given)
    assert given == read(tmp_path, BASE)


def test_directory_says_where_files_are(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "edges.txt").write_text("0 1\n1 2\n")
    given = read(tmp_path, 'directory = "inner"\n' + BASE)
    given["network"] = {"file": "edges.txt"}
    assert config.build(given).network.nodes == 3


# What is refused ---------------------------------------------------------------------------

REFUSED = [
    ("method.step_sise=1", "method.step_sise: unknown key; did you mean step_size?"),
    ("method.colour=1", "method.colour: unknown key; known here: batch, step_size, consensus"),
    ("netwrok.n=3", "netwrok: unknown table; did you mean network?"),
    ("speed=3", "speed: must be a table, got 3"),
    ("network.nodes=0", "network.nodes: must be an integer >= 1, got 0"),
    ("run.name=fast", "run.name: unknown key"),
    ("run.setps=3", "run.setps: unknown key; did you mean steps?"),
    ("method.step_size=-1", "method.step_size: must be > 0, got -1"),
    ("method.step_size=abc", "method.step_size: must be a number, got 'abc'"),
    ("method.step_size=inf", "method.step_size: must be finite, got inf"),
    ("method.batch=0", "method.batch: must be an integer >= 1, got 0"),
    ("method.batch=2.5", "method.batch: must be an integer or 'auto', got 2.5"),
    ("method.batch=true", "method.batch: must be an integer or 'auto', got True"),
    ("method.batch=[1]", "method.batch: must be an integer or 'auto', got [1]"),
    ("method.consensus.rounds=0", "method.consensus.name: missing key; `proxgt list consensus`"),
    (
        'method.consensus={name="Gossip", rounds=0}',
        "method.consensus.rounds: must be an integer >= 1, got 0",
    ),
    (
        'method.consensus={name="Gossip", rounds="many"}',
        "method.consensus.rounds: must be an integer or 'auto', got 'many'",
    ),
    ("method.consensus=Gosip", "method.consensus.name: unknown name 'Gosip'; did you mean Gossip?"),
    ("method.name=ProxGT_SS", "method.name: unknown name 'ProxGT_SS'; did you mean ProxGT_SA?"),
    ("method.name=quantum", "method.name: unknown name 'quantum'; `proxgt list methods` shows"),
    ("method.name=3", "method.name: must be a string, got 3"),
    (
        'method={name="ProxGT", step_size=1}',
        "method.estimator: missing key, which ProxGT needs",
    ),
    ("regularizer.name=l1", "regularizer.name: unknown name 'l1'; did you mean L1?"),
    ("regularizer.strength=-1", "regularizer.strength: must be >= 0, got -1"),
    ("regularizer.strength=much", "regularizer.strength: must be a number or an array, got 'much'"),
    ("regularizer.strength=[1, 2]", "regularizer.strength: is for arguments of shape (2,)"),
    ('regularizer={name="Box", lo=1, hi=0}', "regularizer.lo: must be <= hi"),
    ("regularizer={parts={a=3}}", "regularizer.parts.a: must be a table with a name, got 3"),
    ("network.name=rnig", "network.name: unknown name 'rnig'; did you mean ring?"),
    ("network={}", "network.name: missing key; `proxgt list networks` shows what there is"),
    ('network={name="ring"}', "network.n: missing key, which ring needs"),
    ('network={file="no.txt"}', "network.file: no such file: "),
    ('network={name="geometric", n=4, r="far"}', "network.r: must be a number, got 'far'"),
    ('network={name="ring", n=4, weights="even"}', "network.weights: must be one of"),
    ("problem.name=logistics", "problem.name: unknown name 'logistics'; did you mean logistic?"),
    ('problem={name="noisy_quadratic", p=0}', "problem.p: must be an integer >= 1, got 0"),
    ("problem.nodes=5", "problem: has 5 nodes and the network 4; they must agree"),
    ('problem={name="logistic", dataset="no.npz"}', "problem.dataset: no such file: "),
    ('problem={name="logistic", dataset="moons"}', "problem.dataset: "),
    ('problem={name="logistic", split="lable"}', "problem.split: must be one of"),
    ('problem={data="moons", loss="squared", shape=2}', "problem.data: must be one of"),
    ('problem={data="moons.npz", loss="squared", shape=2}', "problem.data: no such file: "),
    ('problem={data="iris", loss="logistc", shape=4}', "problem.loss.name: unknown name 'logistc'"),
    ('problem={data="iris", loss="squared"}', "problem: give either x0"),
    ('problem={data="iris", loss="squared", shape=9}', "problem.loss: must be a JAX function"),
    ('problem={name="no_such_module:f"}', "problem.name: cannot import 'no_such_module'"),
    ('problem={name="os:nothing"}', "problem.name: module 'os' has no 'nothing'"),
    ('network={name="os:sep"}', "network.name: must make a Network, got '/'"),
    ('problem={name="os:getcwd"}', "regularizer: the problem 'os:getcwd' takes none"),
    ("run.steps=0", "run.steps: must be an integer >= 1, got 0"),
    ("run.steps=many", "run.steps: must be an integer, got 'many'"),
    ("run.dtype=float16", "run.dtype: must be one of 'float32', 'float64', got 'float16'"),
    ("run.tolerance=0", "run.tolerance: must be > 0, got 0"),
    ("run.metric_at=node", "run.metric_at: must be one of 'mean', 'nodes', got 'node'"),
    ("run.engine=abacus", "run.engine: must be one of"),
    ("run.progress=3", "run.progress: must be true or false, got 3"),
]


@pytest.mark.parametrize(("assignment", "message"), REFUSED)
def test_what_is_wrong_is_said_in_one_line(tmp_path, assignment, message):
    with pytest.raises(ConfigError) as caught:
        build(tmp_path, BASE, assignment)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_method_that_cannot_serve_the_problem_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"^method: ProxGT: SARAH with refresh=None \(ProxGT-SR-E\)"
    ):
        build(
            tmp_path,
            BASE,
            "problem={name='noisy_quadratic'}",
            'method={name="ProxGT_SR_E", batch=1, period=2, step_size=1}',
        )


@pytest.mark.parametrize("table", ["problem", "network", "method"])
def test_a_table_that_is_needed_must_be_there(tmp_path, table):
    given = read(tmp_path, BASE)
    del given[table]
    with pytest.raises(ConfigError, match=rf"^{table}: missing table: add \[{table}\]$"):
        config.build(given)


def test_a_module_that_fails_is_named(tmp_path):
    (tmp_path / "broken_module.py").write_text("1 / 0")
    with pytest.raises(ConfigError, match="cannot import 'broken_module': ZeroDivisionError"):
        build(tmp_path, BASE, 'problem.name="broken_module:f"')


@pytest.mark.parametrize("name", ["noise.npz", "noise.graphml"])
def test_a_file_of_another_kind_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x00\x01 no such format")
    key = "W" if name.endswith("npz") else "file"
    with pytest.raises(ConfigError, match=rf"^network.*{name} could not be read"):
        build(tmp_path, BASE, f'network={{{key}="{name}"}}')
