"""How a run goes, apart from what is solved and by what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxgt import checks
from proxgt.engines.local import LocalEngine
from proxgt.engines.mpi import MpiEngine

ENGINES: dict[str, Any] = {"local": LocalEngine, "mpi": MpiEngine}


@dataclass(frozen=True)
class Settings:
    """The settings of `solve`, checked."""

    steps: int
    seed: int
    record_every: int
    tolerance: float | None
    metric_step: float | None
    metric_at: str
    dtype: str
    engine: str

    def __post_init__(self) -> None:
        checks.positive_int("steps", self.steps)
        checks.seed("seed", self.seed)
        checks.positive_int("record_every", self.record_every)
        if self.tolerance is not None:
            checks.positive_number("tolerance", self.tolerance)
        if self.metric_step is not None:
            checks.positive_number("metric_step", self.metric_step)
        checks.one_of("metric_at", self.metric_at, ("mean", "nodes"))
        checks.one_of("dtype", self.dtype, ("float32", "float64"))
        checks.one_of("engine", self.engine, ENGINES)
