"""The same runs over MPI: launched with mpiexec, compared at rank 0 with one machine."""

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import proxgt as pg
from helpers import regression, square_loss
from proxgt.cores import usable_cores
from proxgt.engines.messages import say
from proxgt.engines.partition import cut, partition
from proxgt.problems.shards import Shards, write_shards

PROGRAMS = Path(__file__).parent / "mpi_programs"
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
CORES = len(usable_cores())
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="needs mpi4py and mpiexec: pip install 'proxgt[mpi]'",
)


def launch(ranks, program, *arguments, timeout=1200):
    """Run a program on some ranks; (exit code, stdout, stderr, seconds)."""
    what = ["-n", str(ranks), sys.executable, PROGRAMS / f"{program}.py", *arguments]
    begin = time.monotonic()
    code, out, err = mpiexec(*what, timeout=timeout)
    return code, out, err, time.monotonic() - begin


def mpiexec(*arguments, timeout=120, cwd=None):
    """(exit code, stdout, stderr)"""
    done = subprocess.run(
        [MPIEXEC, *arguments], capture_output=True, text=True, timeout=timeout, cwd=cwd
    )
    return done.returncode, done.stdout, done.stderr


@functools.cache
def said(ranks, program, *arguments):
    """What a program says by case."""
    code, out, err, _ = launch(ranks, program, *arguments)
    assert code == 0, err[-3000:]
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {line.pop("case"): line for line in lines}


# the same trajectory ----------------------------------------------------------------------------

ALL = [
    "full gradient",
    "minibatch",
    "SARAH",
    "SARAH, online",
    "STORM",
    "SAGA",
    "Chebyshev",
    "directed",
    "ragged",
    "population",
    "stream",
    "failing links",
    "varying graph",
    "metric at nodes",
    "estimated L",
]
SOME = ("Chebyshev", "ragged", "failing links")


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "case"),
    [(3, case) for case in SOME] + [pytest.param(2, case, marks=pytest.mark.slow) for case in ALL],
)
def test_a_run_over_ranks_is_the_run_of_one_machine(ranks, case):
    cases = said(ranks, "equality", "some" if ranks == 3 else "all")
    for name, difference in cases[case].items():
        # L is estimated in float32, and the metric has its square
        loose = name == "metric" and case in ("estimated L", "stream")
        assert difference <= (1e-5 if loose else 1e-10), name


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2])
def test_every_method_of_the_registry_is_the_same_over_ranks(ranks):
    cases = said(ranks, "equality", "registry")
    assert len(cases) > 30
    for case, line in cases.items():
        for name, difference in line.items():
            assert difference <= 1e-10, (case, name)


# what crosses ranks -----------------------------------------------------------------------------


@needs_mpi
def test_only_rows_and_sums_cross_ranks_and_only_own_shards_are_read(tmp_path):
    """All that MPI is given is recorded, and is what one machine makes for it; leaks are seen."""
    (case,) = said(3, "contents", str(tmp_path / "shards")).values()
    assert case["opened"] == [
        [f"shard-{i:04d}.npz" for i in own] for own in ((0, 1, 2), (3, 4), (5, 6))
    ]
    assert case["strangers"] == [[], [], []]
    for calls, gradient in zip(case["calls"], case["nearest_gradient"], strict=True):
        assert calls["Startall"] == 240  # rows: 30 steps, 2 consensuses of 2 rounds, 2 neighbours
        assert calls["Ireduce"] == 16  # sums: 4 in each of 4 records
        assert calls["Igatherv"] == 1  # x of all nodes: at the end, not for a callback
        assert gradient > 1e-4
    for road, strangers in case["leaks"].items():
        assert road in strangers


def test_one_module_alone_calls_mpi():
    package = Path(pg.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "mpi4py import" in path.read_text()}
    assert users == {"messages.py"}


@needs_mpi
@pytest.mark.skipif(CORES < 2, reason="needs two cores")
@pytest.mark.parametrize(
    ("binding", "ranks"), [([], 2), (["-bind-to", "core"], 2), ([], CORES + 1)]
)
def test_ranks_keep_to_their_share_of_the_cores(binding, ranks):
    """Ranks that a launcher has bound stay where they are, and more ranks than cores anywhere."""
    program = (
        "import json\n"
        "from proxgt.cores import usable_cores\n"
        "from proxgt.engines.messages import world\n"
        "w = world(); every = w.gathered((w.spins > 0, w.cores, list(usable_cores())), 'cores')\n"
        "if w.rank == 0: print(json.dumps(every))\n"
    )
    code, out, err = mpiexec(*binding, "-n", str(ranks), sys.executable, "-c", program)
    assert code == 0, err
    spins, shares, held = zip(*json.loads(out), strict=True)
    union, enough = set().union(*held), ranks <= CORES
    assert set(spins) == {enough}
    assert set(shares) == {max(1, len(union) // ranks)}
    assert sum(map(len, held)) == len(union) * (1 if enough else ranks)  # disjoint, or all
    assert len(union) == CORES or binding


# refusals ---------------------------------------------------------------------------------------

REFUSALS = {
    "step size": "method.step_size is 0.05 on rank 0 and 0.06 on rank 1",
    "steps": "run.settings.steps is 30 on rank 0 and 31 on rank 1",
    "graph": "network.edges is 7 on rank 0 and 6 on rank 1",
    "loss": "problem.regularizer.strength is 0.1 on rank 0 and 1.1 on rank 1",
    "checkpoint": "run.asked.checkpoint is",
    "version": "run.proxgt is '0.0' on rank 0 and '0.1' on rank 1",
    "ranks": "3 ranks are more than the 2 nodes",
    "missing": "one shard for each of 7 nodes, but shard-0003.npz is missing",
    "extra": "one shard for each of 7 nodes, but shard-0007.npz is there too",
    "width": "shards must hold samples of one shape and dtype, but shard-0005.npz",
    "dtype": "shards must hold samples of one shape and dtype, but shard-0005.npz",
    "broken": "rank 2: ",
    "callable": "rank 2: the samples of node 6 could not be loaded: OSError: its disk is gone",
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    return said(3, "refusals", str(tmp_path_factory.mktemp("shards")))


@needs_mpi
@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_by_all_ranks_in_the_same_line(refusals, case):
    assert REFUSALS[case] in refusals[case]["message"]


def test_mpi_without_mpi4py_is_refused_with_the_remedy(monkeypatch):
    from proxgt.engines import messages

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ValueError, match=r"needs mpi4py .*pip install 'proxgt\[mpi\]'"):
        messages.load_mpi()


@needs_mpi
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        # as of an mpiexec of another MPI, whose processes each begin an MPI of their own
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, "2 processes were started, "),
        ({"SLURM_STEP_NUM_TASKS": "8"}, "8 processes were started, but each is alone in its MPI"),
        ({"MPI4PY_LIBMPI": "/none/libmpi.so"}, "engine='mpi' needs mpi4py and an MPI library"),
    ],
)
def test_an_mpi_that_cannot_join_what_was_started_is_refused(tmp_path, environment, message):
    (tmp_path / "cfg.toml").write_text(CONFIG)
    done = subprocess.run(
        [*CLI, "cfg.toml", "--engine", "mpi"],
        capture_output=True, text=True, cwd=tmp_path, env=os.environ | environment, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"proxgt: --engine: run.engine: {message}")
    assert done.stderr.count("\n") == 1


CLI = [sys.executable, "-m", "proxgt.cli", "run"]
CONFIG = """
[problem]
name = "logistic"
dataset = "breast_cancer"
[network]
name = "ring"
nodes = 4
[method]
name = "ProxGT_SA"
batch = 2
step_size = 0.1
[run]
steps = 10
"""


@needs_mpi
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        # Each of these would leave the first rank waiting for ever in MPI's start.
        (
            ["--engine", "mpi"],
            [],
            "rank 1: cfg.toml: run.engine: is 'local', but mpiexec started",
        ),
        ([], [], "cfg.toml: run.engine: is 'local', but mpiexec started 2 processes: add"),
        (["--engine", "mpi"], ["--engin", "mpi", "--no"], "unrecognized arguments: --no"),
        (["--engine", "mpi"], None, "--engine: run.engine: engine='mpi' needs mpi4py"),
        (None, None, "--engine: run.engine: engine='mpi' needs mpi4py"),
    ],
)
def test_ranks_that_cannot_run_together_end_in_one_line(tmp_path, first, second, message):
    """None stands for a rank without mpi4py."""
    (tmp_path / "cfg.toml").write_text(CONFIG)
    (tmp_path / "without" / "mpi4py").mkdir(parents=True)
    (tmp_path / "without" / "mpi4py" / "__init__.py").write_text("raise ImportError('none here')")

    def part(flags):
        path = [] if flags is not None else ["env", "PYTHONPATH=without"]
        flags = ["--engine", "mpi"] if flags is None else flags
        return ["-n", "1", *path, *CLI, "cfg.toml", "--out", "run", *flags]

    code, out, err = mpiexec(*part(first), ":", *part(second), cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"proxgt: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@needs_mpi
def test_commands_of_one_process_are_refused_under_mpiexec(tmp_path):
    (tmp_path / "cfg.toml").write_text(CONFIG)
    compare = [sys.executable, "-m", "proxgt.cli", "compare", "cfg.toml"]
    code, out, err = mpiexec("-n", "2", *compare, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("proxgt: proxgt compare is of one process, but mpiexec started 2: ")
    assert err.count("\n") == 1


def test_a_last_line_is_read_before_the_job_is_aborted(monkeypatch):
    """mpiexec drops what it has not read by then; here it reads after a while, as when busy."""
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stderr", os.fdopen(write, "w"))
    got = []
    reader = threading.Timer(0.3, lambda: got.append(os.read(read, 100)))
    begin = time.monotonic()
    reader.start()
    say("why")
    assert time.monotonic() - begin >= 0.3
    reader.join()
    assert got == [b"why\n"]
    os.close(read)


# checkpoints and failures -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A directory with checkpoints of 2 ranks at step 10, and what was said of them."""
    where = tmp_path_factory.mktemp("checkpoints")
    return where, said(2, "resuming", str(where), "write")


@needs_mpi
def test_a_checkpoint_resumes_exactly(written):
    for case, line in written[1].items():
        assert line["exact"], case
        assert line["files"] == [
            "history.csv",
            "manifest.json",
            "state-000000000030-0000.npz",
            "state-000000000030-0001.npz",
        ]


@needs_mpi
@pytest.mark.slow
def test_a_checkpoint_resumes_with_more_ranks(written, tmp_path):
    where = shutil.copytree(written[0], tmp_path / "copy")
    for case, line in said(3, "resuming", str(where), "read").items():
        assert line["x"] < 1e-12, case
        assert line["objective"] < 1e-12
        assert len(line["files"]) == 5


@needs_mpi
def test_a_checkpoint_of_two_ranks_resumes_on_one_machine(written, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(PROGRAMS)
    import cases

    where = shutil.copytree(written[0], tmp_path / "copy")
    run = {"steps": 30, "record_every": 10, "seed": 2, "dtype": "float64"}
    for name, how in cases.RESUMED.items():
        resumed = pg.solve(
            cases.ragged(), cases.RING, how, **run, checkpoint=where / name, resume=True
        )
        whole = pg.solve(cases.ragged(), cases.RING, how, **run)
        np.testing.assert_allclose(resumed.x, whole.x, atol=1e-12)
        np.testing.assert_allclose(resumed.output, whole.output, atol=1e-12)


@needs_mpi
@pytest.mark.parametrize(
    ("how", "said_on_stderr"),
    [
        ("killed", "rank 1 (nodes 4, 5, 6) was killed or crashed"),
        pytest.param(
            "loading", "rank 1 (nodes 4, 5, 6) was killed or crashed", marks=pytest.mark.slow
        ),
        pytest.param("crashes", "Segmentation fault", marks=pytest.mark.slow),
        pytest.param("raises", "rank 1 (nodes 4, 5, 6)", marks=pytest.mark.slow),
        pytest.param(
            "callback", "rank 0 (nodes 0, 1, 2, 3): OSError: the disk", marks=pytest.mark.slow
        ),
        pytest.param("before", "rank 1: KeyError", marks=pytest.mark.slow),
    ],
)
def test_a_rank_that_fails_ends_the_job_and_the_run_resumes(tmp_path, how, said_on_stderr):
    code, out, err, _ = launch(2, "failing", str(tmp_path), how)
    ended = time.time()
    failed = float(out.split("dies at")[1].split()[0])
    assert code != 0
    assert ended - failed < 10
    assert said_on_stderr in err
    assert len(re.findall(r"^proxgt: rank", err, re.MULTILINE)) == 1  # of that rank, and no other
    if how in ("before", "loading"):
        return
    step = json.loads((tmp_path / "manifest.json").read_text())["step"]
    assert 0 <= step < 300
    assert said(2, "failing", str(tmp_path), "resume")["resumed"]["exact"]


# partitions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "ranks", "most"),
    [
        (pg.Network.ring(8), 2, 4),
        (pg.Network.path(9), 3, 4),
        (pg.Network.grid(4, 6), 2, 8),
        (pg.Network.star(5), 5, 8),
        (pg.Network.directed_ring(6), 3, 6),
    ],
)
def test_blocks_are_even_and_cut_few_links(network, ranks, most):
    blocks = partition(network.adjacency, ranks)
    assert sorted(np.concatenate(blocks)) == list(range(network.nodes))
    sizes = [len(block) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    both = (network.adjacency + network.adjacency.T) != 0
    assert cut(both, blocks) <= most


def test_a_shuffled_ring_is_put_in_order():
    shuffle = np.random.default_rng(0).permutation(40)
    W = pg.Network.ring(40).W[np.ix_(shuffle, shuffle)]
    network = pg.Network.from_weights(W)
    assert cut(network.adjacency, partition(network.adjacency, 4)) <= 8


# shards -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["array", "tuple", "dict", "ragged"])
def test_a_risk_from_shards_is_the_risk_of_the_data(tmp_path, shape):
    a, b = regression(3, 6, 4)
    data = {
        "array": np.concatenate([a, b[..., None]], axis=2),
        "tuple": (a, b),
        "dict": {"a": a, "b": b},
        "ragged": [(a[i, : i + 2], b[i, : i + 2]) for i in range(3)],
    }[shape]

    def loss(w, sample):
        if shape == "array":
            sample = sample[:-1], sample[-1]
        return square_loss(w, (sample["a"], sample["b"]) if shape == "dict" else sample)

    paths = write_shards(data, tmp_path / "shards")
    assert [path.name for path in paths] == [f"shard-{i:04d}.npz" for i in range(3)]
    x0 = np.zeros(4)
    direct = pg.EmpiricalRisk(loss, data, x0=x0)
    loaded = pg.EmpiricalRisk(loss, Shards(tmp_path / "shards"), x0=x0)
    called = pg.EmpiricalRisk(loss, Shards(direct.data.node, nodes=3), x0=x0)
    how, ring = pg.ProxGT_SR_E(2, 3, 0.05), pg.Network.ring(3)
    first, *others = (pg.solve(risk, ring, how, 10) for risk in (direct, loaded, called))
    assert direct.describe() == loaded.describe() == called.describe()
    for other in others:
        np.testing.assert_allclose(other.x, first.x, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: write_shards(np.ones((2, 3, 4)), d), "already holds 2 shards"),
        (lambda d: write_shards([[np.ones((3, 4))]], d / "new"), "an array, a tuple of arrays"),
        (lambda d: Shards(d, nodes=3), "but shard-0002.npz is missing"),
        (lambda d: Shards(d, nodes=1), "but shard-0001.npz is there too"),
        (lambda d: Shards(d / "none"), "no such directory of shards"),
        (lambda d: Shards(lambda node: node), "nodes must be given"),
        (
            lambda d: pg.EmpiricalRisk(square_loss, Shards(lambda i: np.full(2, np.nan), 2)).data,
            "node 0: data",
        ),
    ],
)
def test_bad_shards_are_refused_by_name(tmp_path, call, message):
    write_shards(np.ones((2, 3, 4)), tmp_path)
    with pytest.raises(ValueError, match=message):
        call(tmp_path)
