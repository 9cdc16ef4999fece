"""The command line: exit codes, one-line errors, what is written, and kill and resume."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

import proxgt as pg
from helpers import regression
from proxgt import cli, config, plots

A, B = regression(4, 6, 3)
LOSS = """
import jax.numpy as jnp

def loss(x, sample):
    return (jnp.dot(sample["a"], x) - sample["b"]) ** 2
"""
CONFIG = """
[problem]
data = "data.npz"
loss = "cli_loss:loss"
shape = 3
smoothness = 5.0

[regularizer]
name = "L1"
strength = 0.05

[network]
name = "ring"
nodes = 4

[method]
name = "ProxGT_SR_E"
batch = 2
period = 3
step_size = 0.05

[run]
steps = 40
record_every = 10
"""
FILES = {"arrays.npz", "checkpoint", "config.toml", "history.csv", "plot.png", "result.json"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a config, its data and its loss; pictures are only touched."""
    monkeypatch.setattr(plots, "plot_result", lambda _, path, title: path.touch())
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", a=A, b=B)
    Path("cli_loss.py").write_text(LOSS)
    Path("config.toml").write_text(CONFIG)
    return tmp_path


def refused(capsys, *argv):
    """The one line on standard error of a command that must end with exit code 2."""
    try:
        code = cli.main(argv)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("proxgt: ")
    assert err.count("\n") == 1
    return err.removeprefix("proxgt: ").rstrip("\n")


def curves(directory):
    """The history of a run without its seconds."""
    history = pg.History.load(Path(directory) / "history.csv")
    return {name: history[name] for name in pg.History.columns if "seconds" not in name}


def assert_same_run(one, other):
    assert (Path(one) / "arrays.npz").read_bytes() == (Path(other) / "arrays.npz").read_bytes()
    np.testing.assert_equal(curves(one), curves(other))


# run ---------------------------------------------------------------------------------------


def test_a_run_prints_a_summary_and_saves_everything(here, capsys):
    assert cli.main(["run", "config.toml"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    for said in (
        "empirical(data='data.npz'", "L1(strength=0.05)", "ring(nodes=4)", "spectral gap 0.",
        "step limit after 40 steps", "80 rounds", "smoothness L", "of 3 coefficients nonzero",
        "Saved in config-run/",
    ):  # fmt: skip
        assert said in " ".join(out.split()), said
    run = here / "config-run"
    assert {file.name for file in run.iterdir()} == FILES
    result = pg.Result.load(run)
    assert result.history["step"].tolist() == [0, 10, 20, 30, 40]


def test_a_run_is_what_the_python_call_gives(here, capsys):
    cli.main(["run", "config.toml", "--out", "run"])
    sys.path.insert(0, str(here))
    try:
        from cli_loss import loss
    finally:
        sys.path.remove(str(here))
    problem = pg.EmpiricalRisk(loss, {"a": A, "b": B}, pg.L1(0.05), x0=np.zeros(3), smoothness=5.0)
    result = pg.solve(problem, pg.Network.ring(4), pg.ProxGT_SR_E(2, 3, 0.05), 40, record_every=10)
    assert np.array_equal(pg.Result.load("run").x, result.x)


def test_the_saved_config_runs_again_from_elsewhere(here, capsys):
    assert cli.main(["run", "config.toml", "--out", "deep/run", "--set", "run.steps=20"]) == 0
    saved = tomllib.loads(Path("deep/run/config.toml").read_text())
    assert saved["run"]["steps"] == 20
    assert saved["run"]["dtype"] == "float32"  # a default, written out
    assert cli.main(["run", "deep/run/config.toml", "--out", "again"]) == 0
    assert_same_run("deep/run", "again")


def test_without_a_config_a_built_in_problem_is_solved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--set", "run.steps=50"]) == 0
    out = capsys.readouterr().out
    assert "16 nodes" in out
    assert {file.name for file in Path("proxgt-run").iterdir()} == FILES
    assert Path("proxgt-run/plot.png").read_bytes().startswith(b"\x89PNG")
    history = pg.Result.load("proxgt-run").history
    assert history["metric"][-1] < 1e-2 * history["metric"][0]


@pytest.mark.slow
def test_the_built_in_problem_converges_to_a_sparse_solution(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begin = time.perf_counter()
    assert cli.main(["run"]) == 0
    assert time.perf_counter() - begin < 60
    result = pg.Result.load("proxgt-run")
    assert result.status == "converged"
    assert result.history["metric"][-1] <= 1e-14
    assert 0 < np.count_nonzero(result.solution) < 32


def test_divergence_has_an_exit_code_of_its_own(here, capsys):
    large = ["--set", "method.step_size=1e9"]
    assert cli.main(["run", "config.toml", "--out", "run", *large]) == 3
    assert "diverged after 0 steps; try a smaller step_size" in capsys.readouterr().out
    assert pg.Result.load("run").status == "diverged"


def test_tolerance_ends_a_run_early(here, capsys):
    assert cli.main(["run", "config.toml", "--set", "run.tolerance=10"]) == 0
    assert "converged after 0 steps" in capsys.readouterr().out


# Output directories ------------------------------------------------------------------------


def test_runs_without_a_directory_are_numbered(here, capsys):
    for name in ("config-run", "config-run-2", "config-run-3"):
        assert cli.main(["run", "config.toml"]) == 0
        assert f"Saved in {name}/\n" in capsys.readouterr().out


def test_a_directory_that_holds_a_run_is_kept(here, capsys):
    cli.main(["run", "config.toml", "--out", "run"])
    before = {file.name: file.stat().st_mtime_ns for file in Path("run").iterdir()}
    capsys.readouterr()
    assert refused(capsys, "run", "config.toml", "--out", "run") == (
        "--out run: already holds a run; --resume continues it, another --out keeps it"
    )
    assert before == {file.name: file.stat().st_mtime_ns for file in Path("run").iterdir()}


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_directory_of_something_else_is_kept(here, capsys, resume):
    assert refused(capsys, "run", "config.toml", "--out", ".", *resume) == (
        "--out .: not empty and not a run; choose another directory"
    )
    assert refused(capsys, "run", "config.toml", "--out", "data.npz", *resume) == (
        "--out data.npz: not a directory"
    )


def test_a_refused_run_leaves_no_directory(here, capsys):
    refused(capsys, "run", "config.toml", "--out", "run", "--set", "run.steps=0")
    # Refused only by the loop, when the directory is there already.
    np.savez("start.npz", np.full(3, 1e30))
    Path("config.toml").write_text(CONFIG.replace("shape = 3", 'x0 = "start.npz"'))
    said = refused(capsys, "run", "config.toml", "--out", "run")
    assert said.startswith("config.toml: x0 must have a finite objective")
    assert not Path("run").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is unwritable to root")
def test_an_unwritable_directory_is_refused(here, capsys):
    Path("locked").mkdir(mode=0o500)
    assert refused(capsys, "run", "config.toml", "--out", "locked/run") == (
        "locked/run: permission denied"
    )


def test_a_directory_below_a_file_is_refused(here, capsys):
    assert refused(capsys, "run", "config.toml", "--out", "data.npz/run") == (
        "data.npz/run: not a directory"
    )


# Errors ------------------------------------------------------------------------------------


def test_a_config_that_is_not_there(here, capsys):
    assert refused(capsys, "run", "none.toml") == "none.toml: no such file or directory"
    assert refused(capsys, "run", ".") == ".: is a directory"


def test_a_config_that_is_not_toml(here, capsys):
    Path("wrong.toml").write_text("[problem\n")
    said = refused(capsys, "run", "wrong.toml")
    assert said.startswith("wrong.toml: not valid TOML: ")
    assert "line 1" in said
    Path("wrong.toml").write_bytes(b"\xff\xfe")
    assert refused(capsys, "run", "wrong.toml") == "wrong.toml: not a text file in UTF-8"


def test_an_error_names_the_file_the_key_and_a_remedy(here, capsys):
    Path("config.toml").write_text(CONFIG.replace("step_size", "step_sise"))
    assert refused(capsys, "run", "config.toml") == (
        "config.toml: method.step_sise: unknown key; did you mean step_size?"
    )


def test_an_error_of_a_flag_names_the_flag(here, capsys):
    assert refused(capsys, "run", "config.toml", "--set", "run.seed=-1") == (
        "--set: run.seed: must be an integer >= 0, got -1"
    )
    assert refused(capsys, "run", "config.toml", "--set", "run") == (
        "--set: must read table.key=value, got 'run'"
    )
    said = refused(capsys, "run", "config.toml", "--set", 'method={name="ProxGT", step_size=1}')
    assert said == "--set: method.estimator: missing key, which ProxGT needs"
    said = refused(capsys, "run", "config.toml", "--engine", "abacus")
    assert said.startswith("--engine: run.engine: must be one of 'local'")


def test_unknown_commands_and_flags(here, capsys):
    assert "invalid choice: 'rnu'" in refused(capsys, "rnu")
    assert "unrecognized arguments: --colour" in refused(capsys, "run", "--colour")
    assert "unknown kind 'method'; did you mean methods?" in refused(capsys, "list", "method")


def test_a_loss_that_fails_is_a_config_error(here, capsys):
    Path("cli_loss_bad.py").write_text("def loss(x, sample):\n    return x[:2] + sample['a']\n")
    said = refused(capsys, "run", "config.toml", "--set", "problem.loss=cli_loss_bad:loss")
    assert said.startswith("--set: problem.loss: must be a JAX function of (params, sample)")


def test_a_bug_is_one_line_and_exit_code_1(here, capsys, monkeypatch, caplog):
    def bug(_):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(config, "build", bug)
    assert cli.main(["run", "config.toml"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "proxgt: RuntimeError: two lines (--log-level debug says where)\n"
    assert "Traceback" not in caplog.text
    assert cli.main(["run", "config.toml", "--log-level", "debug"]) == 1
    assert 'raise RuntimeError("two\\nlines")' in caplog.text


# Interrupted, killed, resumed --------------------------------------------------------------

OFTEN = ["--set", "run.record_every=2"]


def started(out):
    """An endless run in a process of its own that has made some steps."""
    command = [sys.executable, "-m", "proxgt.cli", "run", "config.toml", "--out", out, *OFTEN]
    command += ["--set", "run.steps=1_000_000"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert child.poll() is None, child.stderr.read()
        if (Path(out) / "checkpoint" / "manifest.json").exists() and reached(out) > 20:
            return child
        time.sleep(0.02)
    child.kill()
    raise AssertionError("the run made no steps")


def reached(out):
    """The step of the checkpoint in a directory."""
    return json.loads((Path(out) / "checkpoint" / "manifest.json").read_text())["step"]


def test_killed_and_resumed_is_the_uninterrupted_run(here, capsys):
    child = started("killed")
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not Path("killed/result.json").exists()
    steps = ["--set", f"run.steps={reached('killed') + 20}"]
    # The directory has the config, so none is needed to go on.
    assert cli.main(["run", "--resume", "--out", "killed", *steps]) == 0
    unsaved = ["--set", "run.checkpoint=false"]
    whole = ["run", "config.toml", "--out", "whole"]
    assert cli.main([*whole, *OFTEN, *steps, *unsaved]) == 0
    assert_same_run("killed", "whole")


def test_ctrl_c_saves_what_there_is_and_can_be_resumed(here, capsys):
    child = started("stopped")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "interrupted after" in out
    result = pg.Result.load("stopped")
    assert result.status == "interrupted"
    assert result.steps == reached("stopped") > 20
    assert (Path("stopped") / "plot.png").exists()
    more = ["--set", f"run.steps={result.steps + 4}"]
    assert cli.main(["run", "config.toml", "--out", "stopped", "--resume", *OFTEN, *more]) == 0
    assert pg.Result.load("stopped").steps == result.steps + 4


def test_a_changed_run_is_not_resumed(here, capsys):
    cli.main(["run", "config.toml", "--out", "run"])
    before = Path("run/config.toml").read_text()
    capsys.readouterr()
    change = ["--set", "method.batch=3"]
    said = refused(capsys, "run", "config.toml", "--out", "run", "--resume", *change)
    assert "method.estimator.batch was 2 and is now 3" in said
    assert Path("run/config.toml").read_text() == before


def test_resume_goes_on_with_the_last_numbered_run(here, capsys):
    for _ in range(2):
        cli.main(["run", "config.toml"])
    assert cli.main(["run", "config.toml", "--resume", "--set", "run.steps=60"]) == 0
    assert pg.Result.load("config-run").steps == 40
    assert pg.Result.load("config-run-2").steps == 60


def test_resume_needs_checkpoints(here, capsys):
    change = ["--set", "run.checkpoint=false"]
    assert cli.main(["run", "config.toml", "--out", "run", *change]) == 0
    assert not Path("run/checkpoint").exists()
    capsys.readouterr()
    assert refused(capsys, "run", "config.toml", "--out", "run", "--resume", *change) == (
        "--set: run.checkpoint: must be true for --resume"
    )


# list, report, version ---------------------------------------------------------------------


def test_list_shows_every_kind(capsys):
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    for name in ("logistic", "L1", "ring", "Chebyshev", "STORM", "ProxGT_SR_E", "tukey", "iris"):
        assert name in out
    assert max(map(len, out.splitlines())) <= 80
    assert "batch, period, step_size" in out
    assert cli.main(["list", "losses"]) == 0
    out = capsys.readouterr().out
    assert "tukey" in out
    assert "ring" not in out


def test_report_compares_saved_runs(here, capsys):
    for name, step_size in (("one", 0.02), ("two", 0.05)):
        change = ["--set", f"method.step_size={step_size}"]
        cli.main(["run", "config.toml", "--out", name, *change])
    capsys.readouterr()
    assert cli.main(["report", "one", "two", "--plot", "both.png", "--x", "samples"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.split()[:1] in (["one"], ["two"])]
    assert [row[:4] for row in rows] == [
        ["one", "ProxGT_SR_E", "step", "limit"],
        ["two", "ProxGT_SR_E", "step", "limit"],
    ]
    assert max(map(len, out.splitlines())) <= 80
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")


def test_report_refuses_what_is_no_run(here, capsys):
    assert refused(capsys, "report", "nowhere") == (
        "nowhere holds no result: it has no result.json"
    )
    cli.main(["run", "config.toml", "--out", "one"])
    capsys.readouterr()
    said = refused(capsys, "report", "one", "--plot", "curves.txt")
    assert said.startswith("suffix of the image file must be one of")


def test_version_and_help(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"proxgt {pg.__version__}\n"
    assert cli.main([]) == 0
    assert "report" in capsys.readouterr().out
