"""What a run returns, and its directory on disk."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proxgt import checks
from proxgt._version import __version__
from proxgt.history import History
from proxgt.params import ParamSpec, from_structure, structure_of

if TYPE_CHECKING:
    from proxgt.theory.certificate import Certificate


@dataclass(frozen=True, eq=False)
class Result:
    """The end of a run.

    Attributes:
        x: the last iterate of every node, (nodes, p).
        mean: their mean, (p,).
        solution: the prox point at the mean, as params: sparse or feasible exactly.
        output: Definition 3's output, an iterate drawn uniformly over steps and nodes, (p,).
        status: "converged", "step limit", "diverged" or "interrupted".
        history: the curves.
        smoothness: the L that `metric` was computed with.
        smoothness_is_estimate: whether that L was estimated.
        metric_step: the step size of the gradient mapping that was measured.
        run: what was run, as text: problem, network, method and settings.
    """

    x: np.ndarray
    mean: np.ndarray
    solution: Any
    output: np.ndarray
    status: str
    history: History
    smoothness: float
    smoothness_is_estimate: bool
    metric_step: float
    run: dict[str, str]

    @property
    def steps(self) -> int:
        """Steps made."""
        return self.history[-1].step

    def __repr__(self) -> str:
        last = self.history[-1]
        return (
            f"Result(status={self.status!r}, steps={last.step}, samples={last.samples:g}, "
            f"rounds={last.rounds}, objective={last.objective:.6g}, metric={last.metric:.3g})"
        )

    def certificate(self, epsilon: float, bound: Any = None) -> Certificate:
        """Definition 3 at `epsilon`, with numbers; `bound` is a `Plan`, a `Bound` or a number.

        Certifies only what `metric_at="nodes"` measured; `theory.certificate` takes several.
        """
        from proxgt.theory.certificate import certificate

        return certificate(self, epsilon, bound)

    def plot(self, path: str | Path) -> Path:
        """Draw the curves against samples and rounds into an image file."""
        from proxgt.plots import plot_result

        return plot_result(self, path)

    def save(self, directory: str | Path) -> Path:
        """Write `arrays.npz`, `history.csv` and `result.json` into a directory."""
        directory = checks.directory("directory", directory)
        solution = ParamSpec.of(self.solution).vector(self.solution)
        np.savez(
            directory / "arrays.npz",
            x=self.x,
            mean=self.mean,
            solution=solution,
            output=self.output,
        )
        self.history.save(directory / "history.csv")
        about = {
            "proxgt": __version__,
            "status": self.status,
            "smoothness": self.smoothness,
            "smoothness_is_estimate": self.smoothness_is_estimate,
            "metric_step": self.metric_step,
            "params": structure_of(self.solution),
            "run": self.run,
        }
        (directory / "result.json").write_text(json.dumps(about, indent=1) + "\n")
        return directory

    @classmethod
    def load(cls, directory: str | Path) -> Result:
        """Read what `save` wrote."""
        directory = Path(directory)
        if not (directory / "result.json").exists():
            raise ValueError(f"{directory} holds no result: it has no result.json")
        try:
            about = json.loads((directory / "result.json").read_text())
        except ValueError as error:
            raise ValueError(f"{directory} holds no result: result.json: {error}") from None
        with np.load(directory / "arrays.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        arrays["solution"] = from_structure(about["params"], arrays["solution"])
        names = {f.name for f in dataclasses.fields(cls)}
        kept = {name: value for name, value in about.items() if name in names}
        return cls(**arrays, **kept, history=History.load(directory / "history.csv"))
