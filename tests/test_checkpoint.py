"""Checkpoints: killed at any instant and resumed, a run ends bit-identical."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import proxgt as pg
from helpers import bumpy_loss, regression, square_loss
from proxgt.fingerprint import difference, fingerprint

A, B = regression(5, 8, 4)
X1 = np.linspace(-1, 1, 4)
RING = pg.Network.ring(5)
PENTAGRAM = pg.Network(np.roll(np.eye(5), 2, axis=1) + np.roll(np.eye(5), 3, axis=1))
RUN = {"steps": 60, "record_every": 10, "seed": 2}


def risk(h=pg.L1(0.1), loss=bumpy_loss, a=A):
    return pg.EmpiricalRisk(loss, (a, B), h, x0=X1, smoothness=5.0)


def method(step_size=0.05, batch=2):
    return pg.ProxGT_SR_E(batch, 7, step_size, pg.Gossip(2))


def same(one, other):
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.output, other.output)
    for column in set(pg.History.columns) - {"seconds"}:
        assert np.array_equal(one.history[column], other.history[column]), column


@pytest.mark.parametrize("estimator", [pg.SARAH(2, 7), pg.SAGA(2), pg.STORM(2, 0.1)])
def test_stopped_and_resumed_equals_uninterrupted(tmp_path, estimator):
    how = pg.ProxGT(estimator, 0.05)
    whole = pg.solve(risk(), RING, how, **RUN)

    def stop(snapshot):
        return snapshot.row.step == 30

    part = pg.solve(risk(), RING, how, **RUN, checkpoint=tmp_path, callbacks=[stop])
    assert part.steps == 30
    same(pg.solve(risk(), RING, how, **RUN, checkpoint=tmp_path, resume=True), whole)


CHILD = """
import sys, numpy as np
sys.path.insert(0, {tests!r})
import proxgt as pg
from test_checkpoint import risk, method, RING
result = pg.solve(risk(), RING, method(), 1200, record_every=5, checkpoint={where!r},
                  resume=True, callbacks=[lambda s: print(s.row.step, flush=True) and False])
result.save({where!r} + "/result")
"""


@pytest.mark.parametrize("kill_after", [3, 120])
def test_killed_at_any_instant_and_resumed_is_bit_identical(tmp_path, kill_after):
    where = str(tmp_path / "run")
    code = CHILD.format(tests=os.path.dirname(__file__), where=where)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    for _ in range(kill_after):
        child.stdout.readline()
    time.sleep(np.random.default_rng(kill_after).uniform(0, 0.004))
    child.send_signal(signal.SIGKILL)
    child.wait()
    reached = json.loads((tmp_path / "run" / "manifest.json").read_text())["step"]
    assert 0 < reached < 1200
    resumed = pg.solve(risk(), RING, method(), 1200, record_every=5, checkpoint=where, resume=True)
    same(resumed, pg.solve(risk(), RING, method(), 1200, record_every=5))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"problem": risk(pg.L1(0.2))}, "problem.regularizer.strength was 0.1 and is now 0.2"),
        ({"problem": risk(pg.L2(0.1))}, "problem.regularizer was L1 and is now L2"),
        ({"problem": risk(loss=square_loss)}, "problem.loss was helpers.bumpy_loss"),
        ({"problem": risk(a=A + 1e-9)}, "problem.data was"),
        ({"problem": risk().starting_at(X1 + 1)}, "run.x0"),
        ({"network": pg.Network.path(5)}, "network.edges was 5 and is now 4"),
        ({"network": PENTAGRAM}, "network.links"),
        ({"network": pg.Network.ring(5, weights="lazy-metropolis")}, "network.weights was"),
        ({"method": method(0.06)}, "method.step_size was 0.05 and is now 0.06"),
        ({"method": method(batch=3)}, "method.estimator.batch was 2 and is now 3"),
        ({"method": pg.ProxGT_SA(2, 0.05)}, "method.consensus.rounds was 2 and is now 1"),
        ({"seed": 3}, "run.seed was 2 and is now 3"),
        ({"dtype": "float64"}, "run.dtype was 'float32' and is now 'float64'"),
    ],
)
def test_a_changed_run_is_refused_with_the_difference_named(tmp_path, changed, named):
    what = {"problem": risk(), "network": RING, "method": method()} | RUN
    pg.solve(**what, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="is of another run") as refusal:
        pg.solve(**(what | changed), checkpoint=tmp_path, resume=True)
    assert named in str(refusal.value)


def test_a_loss_that_differs_only_in_a_captured_number_is_told_apart(tmp_path):
    def with_scale(scale):
        return lambda w, sample: scale * bumpy_loss(w, sample)

    pg.solve(risk(loss=with_scale(1.0)), RING, method(), **RUN, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"problem.loss.scale was 1.0 and is now 2.0"):
        pg.solve(
            risk(loss=with_scale(2.0)), RING, method(), **RUN, checkpoint=tmp_path, resume=True
        )


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ("SCALE = 1.0", "SCALE = 2.0", "problem.loss.SCALE was 1.0 and is now 2.0"),
        ("def helper(r): return r", "def helper(r): return r + r", "problem.loss.code was"),
        ("@jax.jit\ndef helper(r): return r", "def helper(r): return -r", "problem.loss.code was"),
        ("", "def loss(w, sample): return SCALE * w @ w", "problem.loss.code was"),
        ("", "loss = jax.jit(lambda w, sample: SCALE * w @ w)", "problem.loss was"),
    ],
)
def test_what_a_loss_names_in_its_module_belongs_to_it(one, other, named):
    module = """
import jax
SCALE = 1.0
def helper(r): return r
@jax.jit
def loss(w, sample): return SCALE * helper(sample[0] @ w - sample[1]) ** 2
"""

    def loss(change):
        names = {"__name__": "theirs"}
        exec(module + change, names)
        return names["loss"]

    was, again, now = (fingerprint(loss(text), "problem.loss") for text in (one, one, other))
    assert was == again
    assert difference(was, now).startswith(named)


def test_a_loss_that_names_a_set_of_texts_is_the_same_in_every_process():
    """Python orders such a set by a hash that is another one in every process."""
    code = """
from proxgt.fingerprint import fingerprint
def loss(w, sample): return w if "c" in {"a", "bb", "ccc", "dddd", "eeeee"} else -w
print(fingerprint(loss, "loss"))
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": str(k)},
            capture_output=True,
            check=True,
        ).stdout
        for k in range(3)
    }
    assert len(said) == 1


def test_the_same_network_made_in_another_way_continues(tmp_path):
    pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path)
    same_W = pg.Network.from_weights(RING.W)
    pg.solve(risk(), same_W, method(), **RUN, checkpoint=tmp_path, resume=True)


def test_more_steps_continue_and_a_held_directory_is_not_overwritten(tmp_path):
    pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="already holds a run: pass resume=True"):
        pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path)
    longer = RUN | {"steps": 90}
    more = pg.solve(risk(), RING, method(), **longer, checkpoint=tmp_path, resume=True)
    same(more, pg.solve(risk(), RING, method(), **longer))
    files = sorted(f.name for f in tmp_path.iterdir())
    assert files == ["history.csv", "manifest.json", "state-000000000090.npz"]
    np.load(tmp_path / files[2], allow_pickle=False)  # no pickle inside


def test_killed_between_history_and_manifest(tmp_path):
    """Rows that no manifest vouches for, even torn ones, are dropped and written again."""
    stop = {"callbacks": [lambda s: s.row.step == 30]}
    pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path, **stop)
    with (tmp_path / "history.csv").open("a") as file:
        file.write("40,80.0,16")
    resumed = pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path, resume=True)
    same(resumed, pg.solve(risk(), RING, method(), **RUN))
    assert list(pg.History.load(tmp_path / "history.csv")) == list(resumed.history)


def test_a_foreign_or_broken_manifest_is_refused(tmp_path):
    pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path)
    manifest = tmp_path / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"format": 1', '"format": 99'))
    with pytest.raises(ValueError, match=r"checkpoint format 99 .* reads format 1"):
        pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path, resume=True)
    for broken in ("{", "[1]"):
        manifest.write_text(broken)
        with pytest.raises(ValueError, match="is not a checkpoint manifest"):
            pg.solve(risk(), RING, method(), **RUN, checkpoint=tmp_path, resume=True)
