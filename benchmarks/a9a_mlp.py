"""A published setting: a sparse neural network on a9a over a ladder of eight nodes.

    python benchmarks/a9a_mlp.py TRAIN TEST [--quick] [--steps 10001] [--runs DIR] [--only LABEL]
    python benchmarks/a9a_mlp.py TRAIN TEST [--runs DIR] --report

TRAIN and TEST are a9a and a9a.t in LIBSVM's format, or their .npz copies. The setting is that of
DEEPSTORM (Mancino-Ball, Miao, Xu, Chen, AAAI 2023): rows of length 1, eight contiguous shards,
a ladder graph, an MLP 123-64-2 with tanh, h = 1e-4 ||x||_1, 10,001 iterations, stationarity
at step 1. Every method's step size is searched with the same budget first. Runs are kept in
DIR as JSON, method by method, and those that are there are not made again; docs/a9a.md and
docs/img/a9a.png are made of them, by `--report` alone. All of it takes about two minutes on two
idle cores; `--quick`, to see that it runs, one, and it leaves docs/ alone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import networkx as nx
import numpy as np

import proxgt as pg
from proxgt import plots
from proxgt.comparison.tuning import tune
from proxgt.estimators import Minibatch
from proxgt.methods import (
    DEEPSTORM_v1,
    DEEPSTORM_v2,
    DProxSGT,
    FallingMomentum,
    FallingRelaxation,
    FallingStep,
    Prox_DASA_GT,
)
from proxgt.methods.sppdm import SPPDM

NODES, STRENGTH, BATCH, PERIOD, REFRESH = 8, 1e-4, 64, 32, 1024
DOCS = Path(__file__).parent.parent / "docs"
TUNING_STEPS, GRID = 2000, (0.1, 0.3, 1.0)


def falling(make):
    """DEEPSTORM's published schedules; c a^2 = 3.5 keeps its momentum at any scale a."""

    def method(a):
        schedule = FallingStep(a, 7)
        return make(BATCH, schedule, FallingMomentum(schedule, 3.5 / a**2), BATCH)

    return method


def sppdm(a):
    """With the constants published for losses over 8, which here are whole: c, kappa, dual step."""
    published = {"penalty": 1.0, "anchor": 0.1, "dual_step": 0.01}
    constants = {name: NODES * value for name, value in published.items()}
    return SPPDM(Minibatch(BATCH), a, momentum=0.8, **constants)


# Functions of the scale that is searched.
METHODS = {
    "ProxGT-SR-E": lambda a: pg.ProxGT_SR_E(BATCH, PERIOD, a),
    "ProxGT-SR-O": lambda a: pg.ProxGT_SR_O(BATCH, PERIOD, REFRESH, a),
    "ProxGT-SA": lambda a: pg.ProxGT_SA(BATCH, a),
    "DEEPSTORM v1": falling(DEEPSTORM_v1),
    "DEEPSTORM v2": falling(DEEPSTORM_v2),
    "SPPDM": sppdm,
    "Prox-DASA-GT": lambda a: Prox_DASA_GT(
        Minibatch(BATCH), a, relaxation=FallingRelaxation(0.3, NODES)
    ),
    "DProxSGT": lambda a: DProxSGT(8, a),
}
COLUMNS = ("step", "samples", "rounds", "stationarity", "consensus", "objective")
MEASURED = ("train_loss", "accuracy", "density")


def network():
    """The ladder with W = I - (graph Laplacian) / (its largest eigenvalue): mixing rate 0.892."""
    laplacian = nx.laplacian_matrix(nx.ladder_graph(NODES // 2)).toarray().astype(float)
    return pg.Network.from_weights(np.eye(NODES) - laplacian / np.linalg.eigvalsh(laplacian)[-1])


def problem(path, seed=0):
    features, labels = pg.data.read_libsvm(path, normalize="rows")
    data = pg.data.shard((features, labels), NODES, how="contiguous")
    return pg.tasks.mlp_classifier(data, [64], regularizer=pg.L1(STRENGTH), seed=seed)


def outputs(params, features):
    """Logits, in NumPy."""
    first, last = params
    return np.tanh(features @ first["w"] + first["b"]) @ last["w"] + last["b"]


class Watch:
    """Train loss, test accuracy and density of the solution at every record."""

    def __init__(self, risk, test, features):
        self.risk, self.rows = risk, []
        inputs, labels = pg.data.read_libsvm(test, normalize="rows", features=features)
        self.inputs, self.classes = inputs, (labels > 0).astype(int)

    def __call__(self, snapshot):
        solution = snapshot.solution
        flat = np.concatenate([np.ravel(a) for layer in solution for a in layer.values()])
        right = outputs(solution, self.inputs).argmax(1) == self.classes
        loss = snapshot.row.objective - STRENGTH * np.abs(flat).sum()
        self.rows.append((float(loss), float(right.mean()), float((flat != 0).mean())))


def numpy_rate(path, steps, step=0.3):
    """Steps a second of ProxGT-SR-E as a careful NumPy user writes it: all nodes stacked."""
    features, labels = pg.data.read_libsvm(path, normalize="rows")
    m = len(features) // NODES
    a = features[: m * NODES].reshape(NODES, m, -1)
    target = np.eye(2, dtype=np.float32)[(labels[: m * NODES] > 0).astype(int)]
    target = target.reshape(NODES, m, 2)
    start = problem(path).x0
    shapes = [(123, 64), (64,), (64, 2), (2,)]
    flat = np.concatenate([np.ravel(start[k][part]) for k in (0, 1) for part in "wb"])
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def parts(x):
        split = np.split(x, cuts, axis=1)
        return [part.reshape(NODES, *shape) for part, shape in zip(split, shapes, strict=True)]

    def gradient(x, inputs, goal):
        w1, b1, w2, b2 = parts(x)
        hidden = np.tanh(inputs @ w1 + b1[:, None])
        logits = hidden @ w2 + b2[:, None]
        logits = np.exp(logits - logits.max(-1, keepdims=True))
        error = (logits / logits.sum(-1, keepdims=True) - goal) / inputs.shape[1]
        back = (error @ w2.swapaxes(1, 2)) * (1 - hidden**2)
        grads = (
            inputs.swapaxes(1, 2) @ back,
            back.sum(1),
            hidden.swapaxes(1, 2) @ error,
            error.sum(1),
        )
        return np.concatenate([g.reshape(NODES, -1) for g in grads], axis=1)

    W, rng = network().W.astype(np.float32), np.random.default_rng(0)
    rows = np.arange(NODES)[:, None]
    x = before = np.tile(flat.astype(np.float32), (NODES, 1))
    y = v_last = np.zeros_like(x)
    step, threshold = np.float32(step), np.float32(step * STRENGTH)
    clock = time.perf_counter()
    for t in range(steps):
        if t % PERIOD == 0:
            v = gradient(x, a, target)
        else:
            draw = rng.integers(0, m, (NODES, BATCH))
            inputs, goal = a[rows, draw], target[rows, draw]
            v = v_last + gradient(x, inputs, goal) - gradient(before, inputs, goal)
        y = W @ (y + v - v_last)
        z = x - step * y
        before, v_last = x, v
        x = W @ (np.sign(z) * np.maximum(np.abs(z) - threshold, 0))
    return steps / (time.perf_counter() - clock)


def run(label, args, out):
    """Search the step, run, and keep what was measured."""
    risk, links = problem(args.train), network()
    options = {"metric_step": 1.0}
    tuning = tune(
        risk,
        links,
        METHODS[label],
        GRID,
        budget={"steps": min(TUNING_STEPS, args.steps)},
        column="stationarity",
        extend=1,
        **options,
    )
    watch = Watch(risk, args.test, 123)
    before = numpy_rate(args.train, 100)
    result = pg.solve(
        risk,
        links,
        tuning.method,
        args.steps,
        record_every=max(args.steps // 50, 1),
        callbacks=[watch],
        **options,
    )
    rates = (before + numpy_rate(args.train, 100)) / 2
    kept = {name: result.history[name].tolist() for name in COLUMNS}
    kept |= dict(zip(MEASURED, map(list, zip(*watch.rows, strict=True)), strict=True))
    kept |= {
        "scale": tuning.step_size,
        "trials": [list(trial) for trial in tuning.trials],
        "status": result.status,
        "rate": result.steps / result.history[-1].seconds,
        "numpy_rate": rates,
    }
    out.write_text(json.dumps(kept))
    last = {name: kept[name][-1] for name in ("stationarity", *MEASURED)}
    print(label, f"scale {tuning.step_size:.3g}", last, f"{kept['rate']:.0f} steps/s", flush=True)


def file_of(directory, label):
    return directory / f"{label.replace(' ', '-')}.json"


def report(directory, docs):
    """a9a.md and img/a9a.png in `docs` from the runs in a directory."""
    runs = {
        label: json.loads(file_of(directory, label).read_text())
        for label in METHODS
        if file_of(directory, label).exists()
    }
    (docs / "img").mkdir(exist_ok=True)
    draw(runs, docs / "img" / "a9a.png")
    lines = [
        "| method | scale | stationarity | best | train loss | test accuracy % | density | samples "
        "per node | rounds | steps/s | x NumPy |",
        "|---|" + "---:|" * 10,
    ]
    for label, run in runs.items():
        ratio = run["rate"] / run["numpy_rate"]
        lines.append(
            f"| {label} | {run['scale']:.3g} | {run['stationarity'][-1]:.1e} | "
            f"{min(run['stationarity']):.1e} | {run['train_loss'][-1]:.4f} | "
            f"{100 * run['accuracy'][-1]:.2f} | {run['density'][-1]:.3f} | "
            f"{run['samples'][-1]:,.0f} | {run['rounds'][-1]:,} | {run['rate']:,.0f} | "
            f"{ratio:.2f} |"
        )
    steps = max(run["step"][-1] for run in runs.values())
    text = (Path(__file__).parent / "a9a.md.in").read_text()
    text = text.replace("{steps}", f"{steps:,}").replace("{table}", "\n".join(lines))
    (docs / "a9a.md").write_text(text)


def draw(runs, path):
    panels = (
        ("samples", "stationarity"),
        ("rounds", "stationarity"),
        ("samples", "train_loss"),
        ("samples", "accuracy"),
        ("samples", "density"),
    )
    with plots.drawing(path, (13, 7.6)) as figure:
        grid = figure.subplots(2, 3).ravel()
        for axes, (x, y) in zip(grid, panels, strict=False):
            for k, (label, one) in enumerate(runs.items()):
                style = {
                    "color": plots.COLOURS[k % len(plots.COLOURS)],
                    "linestyle": plots.DASHES[k % len(plots.DASHES)],
                    "marker": plots.MARKERS[k % len(plots.MARKERS)],
                }
                axes.plot(one[x][1:], one[y][1:], label=label, markevery=8, markersize=4, **style)
            axes.set_xlabel(plots.LABELS[x])
            axes.set_ylabel(y.replace("_", " "))
            axes.set_xscale("log")
            axes.grid(color="0.92")
            axes.spines[["top", "right"]].set_visible(False)
        for axes in grid[:2]:
            axes.set_yscale("log")
        # what happens in the first steps would hide the rest
        grid[2].set_ylim(0.315, 0.40)
        grid[3].set_ylim(0.80, 0.856)
        grid[-1].axis("off")
        handles, labels = grid[0].get_legend_handles_labels()
        grid[-1].legend(handles, labels, loc="center", frameon=False)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--steps", type=int, default=10_001)
    parser.add_argument("--quick", action="store_true", help="100 steps, and docs/ left alone")
    parser.add_argument("--runs", type=Path, default=Path("a9a-runs"), help="where runs are kept")
    parser.add_argument("--only", action="append", choices=METHODS, help="may be repeated")
    parser.add_argument("--report", action="store_true", help="only write docs/ from kept runs")
    args = parser.parse_args()
    args.runs.mkdir(parents=True, exist_ok=True)
    args.steps = 100 if args.quick else args.steps
    clock = time.perf_counter()
    for label in [] if args.report else args.only or METHODS:
        if not file_of(args.runs, label).exists():
            run(label, args, file_of(args.runs, label))
            print(f"{(time.perf_counter() - clock) / 60:.1f} minutes", flush=True)
    report(args.runs, args.runs if args.quick else DOCS)


if __name__ == "__main__":
    main()
