"""Pictures: they are drawn, by no global state, and what cannot be drawn is refused."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import proxgt as pg
from proxgt import plots
from proxgt.history import Row


def result(records=6, solution=None, last=1e-9, dtype=np.float32):
    """A run that never was, with the given last metric."""
    metric = np.geomspace(1, last, records) if records > 1 else [1.0]
    rows = [
        Row(
            step=10 * k,
            samples=20.0 * k,
            gradients=30.0 * k,
            rounds=40 * k,
            bits=50.0 * k,
            objective=1 + m,
            stationarity=m,
            consensus=m if k else 0.0,
            metric=m,
            seconds=0.1 * k,
        )
        for k, m in enumerate(metric)
    ]
    x = np.zeros((4, 3), dtype)
    solution = np.array([0.0, -2.0, 1.0]) if solution is None else solution
    run = {"method": "ProxGT"}
    return pg.Result(x, x[0], solution, x[0], "step limit", pg.History(rows), 2.0, False, 0.1, run)


@pytest.fixture
def figures(monkeypatch):
    """Every figure as it is saved."""
    saved = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (saved.append(self), save(self, *a, **k))[1]
    )
    return saved


def test_one_run(tmp_path, figures):
    path = plots.plot_result(result(), tmp_path / "run.png")
    assert path == tmp_path / "run.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    (figure,) = figures
    assert figure.get_suptitle() == "ProxGT over 4 nodes: step limit after 50 steps"
    by_samples, by_rounds, objective, solution = figure.axes
    assert [by_samples.get_xlabel(), by_rounds.get_xlabel()] == [
        "samples per node",
        "communication rounds",
    ]
    metric, stationarity, consensus = by_samples.lines
    np.testing.assert_allclose(metric.get_xdata(), [0, 20, 40, 60, 80, 100])
    np.testing.assert_allclose(metric.get_ydata(), np.geomspace(1, 1e-9, 6))
    np.testing.assert_allclose(consensus.get_ydata()[1:], 4 * stationarity.get_ydata()[1:])
    assert np.isnan(consensus.get_ydata()[0])  # zero has no place on a log axis
    assert by_samples.get_yscale() == objective.get_yscale() == "log"
    np.testing.assert_allclose(solution.lines[0].get_ydata(), [2, 1])
    assert "2 of 3" in solution.texts[0].get_text()


def test_the_method_of_a_result(tmp_path):
    assert result().plot(tmp_path / "run.svg").read_text().startswith("<?xml")


def test_an_objective_below_rounding_is_not_drawn(tmp_path, figures):
    plots.plot_result(result(), tmp_path / "single.png")
    plots.plot_result(result(dtype=np.float64), tmp_path / "double.png")
    single, double = (np.isfinite(f.axes[2].lines[0].get_ydata()).sum() for f in figures)
    assert single < double


@pytest.mark.parametrize(
    "odd",
    [
        result(records=1),
        result(solution=np.zeros(3)),
        result(solution=np.arange(1000.0)),
        result(solution={"w": np.ones((2, 2)), "b": np.zeros(())}),
    ],
    ids=["one record", "zero solution", "long solution", "named params"],
)
@pytest.mark.filterwarnings("error")
def test_odd_runs_are_drawn_without_warnings(tmp_path, odd):
    assert plots.plot_result(odd, tmp_path / "odd.png").stat().st_size > 1000
    assert plots.plot_results({"odd": odd}, tmp_path / "odd.pdf").stat().st_size > 1000


def test_several_runs(tmp_path, figures):
    runs = {f"run {k}": result(last=10.0 ** -(k + 2)) for k in range(9)}
    plots.plot_results(runs, tmp_path / "runs.png", y="objective")
    (figure,) = figures
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == list(runs)
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 9
    # All gaps are to the one best objective, that of the last run.
    first = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(first[-1], 1e-2 - 1e-10, rtol=1e-4)


def test_one_measure_of_cost(tmp_path, figures):
    plots.plot_results({"a": result()}, tmp_path / "a.png", x="seconds", y="consensus")
    (axes,) = figures[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("seconds", "consensus error")


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"suffix of the image file must be one of .*'\.txt'"):
        plots.plot_result(result(), tmp_path / "run.txt")
    with pytest.raises(ValueError, match="got ''"):
        plots.plot_result(result(), tmp_path / "run")
    with pytest.raises(ValueError, match=r"x must be one of .* did you mean 'rounds'"):
        plots.plot_results({"a": result()}, tmp_path / "a.png", x="round")
    with pytest.raises(ValueError, match="y must be one of"):
        plots.plot_results({"a": result()}, tmp_path / "a.png", y="loss")
    with pytest.raises(ValueError, match="at least one result"):
        plots.plot_results({}, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_pyplot_is_never_imported():
    code = "import proxgt.cli, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
