"""Every composite method on one problem: what it takes to reach a metric of 1e-4.

    python benchmarks/rivals.py [--quick] [--runs DIR] [--report]

Non-convex sparse logistic regression on digits_parity (1,797 samples, 64 features, which come
with scikit-learn), sorted by label over 20 nodes of a ring with Metropolis weights, one round
of gossip. Every method's step size is searched under a share of the same budget, then run with
three seeds; speeds are ratios to ProxGT with the same estimator, run side by side. Results are
kept in DIR; docs/rivals.md and docs/img/rivals.png are made of them, by `--report` alone from
what is there. `--quick` has a tenth of the budget and leaves docs/ alone. Both say how long they
took.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import proxgt as pg
from proxgt.comparison import Comparison
from proxgt.comparison.compare import compare
from proxgt.comparison.tuning import tune
from proxgt.estimators import FullGradient, Minibatch
from proxgt.methods.composite import Prox_DGD
from proxgt.methods.compressors import TopK
from proxgt.methods.deepstorm import DEEPSTORM_v1, DEEPSTORM_v2
from proxgt.methods.diffusion import Prox_ED
from proxgt.methods.followups import CDProxSGT, DProxSGT, Prox_DASA, Prox_DASA_GT
from proxgt.methods.primal_dual import NIDS, PG_EXTRA
from proxgt.methods.sppdm import PPDM, SPPDM
from proxgt.methods.successive import NEXT, SONATA

NODES, PENALTY, STRENGTH, TARGET = 20, 0.1, 0.01, 1e-4
BATCH, PERIOD, REFRESH, MOMENTUM = 9, 10, 45, 0.05  # b = q, about sqrt(m)
BUDGET = {"samples": 2e5, "rounds": 2e4}
DOCS = Path(__file__).parent.parent / "docs"

# With any step size; it is replaced by the one that the search finds.
METHODS = {
    "ProxGT-SR-E": pg.ProxGT_SR_E(BATCH, PERIOD, 1.0),
    "ProxGT-SR-O": pg.ProxGT_SR_O(BATCH, PERIOD, REFRESH, 1.0),
    "ProxGT-SA": pg.ProxGT_SA(BATCH, 1.0),
    "ProxGT, full gradient": pg.ProxGT(FullGradient(), 1.0),
    "Prox-DGD": Prox_DGD(FullGradient(), 1.0),
    "NEXT": NEXT(FullGradient(), 1.0),
    "SONATA": SONATA(FullGradient(), 1.0),
    "NIDS": NIDS(FullGradient(), 1.0),
    "PG-EXTRA": PG_EXTRA(FullGradient(), 1.0),
    "Prox-ED": Prox_ED(FullGradient(), 1.0),
    "PPDM": PPDM(1.0, dual_step=0.1),
    "SPPDM": SPPDM(Minibatch(BATCH), 1.0, dual_step=0.1, momentum=0.8),
    "DEEPSTORM v1": DEEPSTORM_v1(BATCH, 1.0, MOMENTUM, REFRESH),
    "DEEPSTORM v2": DEEPSTORM_v2(BATCH, 1.0, MOMENTUM, REFRESH),
    "Prox-DASA": Prox_DASA(Minibatch(BATCH), 1.0, relaxation=0.1),
    "Prox-DASA-GT": Prox_DASA_GT(Minibatch(BATCH), 1.0, relaxation=0.1),
    "DProxSGT": DProxSGT(1, 1.0),
    "CDProxSGT": CDProxSGT(Minibatch(BATCH), TopK(0.4), 1.0),
}


def problem():
    data = pg.data.shard(pg.data.load("digits_parity"), NODES, how="label")
    return pg.tasks.logistic(data, pg.L1(STRENGTH), penalty=PENALTY)


def tuned(risk, ring, budget, share):
    """Every method with the step size that a search with a share of the budget finds."""
    found = {}
    part = {name: limit * share for name, limit in budget.items()}
    for label, method in METHODS.items():
        tuning = tune(risk, ring, method, budget=part, extend=6)
        found[label] = tuning
        best = min(trial.score for trial in tuning.trials)
        scale = tuning.step_size * risk.smoothness
        print(f"{label:<24} a L = {scale:<8.3g} metric {best:.2e}", flush=True)
    return found


def relative_times(risk, ring, methods, steps, repeats=3):
    """Seconds a step over those of ProxGT with the same estimator, median of runs in turn."""
    ratios = {}
    for label, method in methods.items():
        reference = pg.ProxGT(method.estimator, 0.01)
        ratio = []
        for k in range(repeats + 1):
            spent = []
            for one in (method, reference):
                result = pg.solve(risk, ring, one, steps, record_every=steps, seed=k)
                spent.append(result.history[-1].seconds / max(result.steps, 1))
            ratio.append(spent[0] / spent[1])
        ratios[label] = float(np.median(ratio[1:]))
        print(f"{label:<24} {ratios[label]:.2f} x the time of ProxGT", flush=True)
    return ratios


def run(directory, quick):
    risk, ring = problem(), pg.Network.ring(NODES)
    budget = {name: limit / (10 if quick else 1) for name, limit in BUDGET.items()}
    clock = time.perf_counter()
    tunings = tuned(risk, ring, budget, 0.5)
    methods = {label: tuning.method for label, tuning in tunings.items()}
    comparison = compare(risk, ring, methods, budget, seeds=3, records=200)
    comparison.save(directory)
    about = {
        "budget": budget,
        "scales": {label: t.step_size * risk.smoothness for label, t in tunings.items()},
        "ratios": relative_times(risk, ring, methods, 500 if quick else 3000),
        "smoothness": risk.smoothness,
        "mixing_rate": ring.mixing_rate,
        "minutes": (time.perf_counter() - clock) / 60,
    }
    (directory / "about.json").write_text(json.dumps(about, indent=1))


def report(directory, docs):
    """rivals.md and img/rivals.png in `docs`."""
    comparison = Comparison.load(directory)
    about = json.loads((directory / "about.json").read_text())
    (docs / "img").mkdir(exist_ok=True)
    comparison.plot(docs / "img" / "rivals.png")
    lines = [
        "| method | a L | reached | samples | rounds | steps | final metric | time a step |",
        "|---|" + "---:|" * 7,
    ]
    rows = comparison.summary(TARGET).rows
    for row in sorted(rows, key=lambda row: (-row.reached, row.samples, row.final)):
        counts = ["-" if np.isnan(n) else f"{n:,.0f}" for n in (row.samples, row.rounds, row.steps)]
        cells = [
            row.method,
            f"{about['scales'][row.method]:.2g}",
            f"{row.reached}/{row.seeds}",
            *counts,
            f"{row.final:.1e}",
            f"{about['ratios'][row.method]:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    text = (Path(__file__).parent / "rivals.md.in").read_text()
    values = {
        "table": "\n".join(lines),
        "samples": f"{about['budget']['samples']:,.0f}",
        "rounds": f"{about['budget']['rounds']:,.0f}",
        "smoothness": f"{about['smoothness']:.1f}",
        "mixing_rate": f"{about['mixing_rate']:.3f}",
        "slow": _slow(about["ratios"]),
    }
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    (docs / "rivals.md").write_text(text)
    print(f"{about['minutes']:.1f} minutes", flush=True)


def _slow(ratios):
    """The methods whose steps take more than twice as long as ProxGT's."""
    found = [f"{label} ({ratio:.1f} times)" for label, ratio in ratios.items() if ratio > 2]
    return ", ".join(found) or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the budget")
    parser.add_argument(
        "--runs", type=Path, default=Path("rivals-runs"), help="where runs are kept"
    )
    parser.add_argument("--report", action="store_true", help="only write docs/ from kept runs")
    args = parser.parse_args()
    args.runs.mkdir(parents=True, exist_ok=True)
    if not args.report:
        run(args.runs, args.quick)
    report(args.runs, args.runs if args.quick else DOCS)


if __name__ == "__main__":
    main()
