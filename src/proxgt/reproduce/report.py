"""Claims run one after another, each written to a directory as soon as it is done.

DIR/scaling.png, scaling.csv      a figure and a table for every claim
DIR/verdicts.json, report.md      all verdicts so far, for programs and for people
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from proxgt._version import __version__
from proxgt.reproduce.findings import Finding
from proxgt.reproduce.settings import Effort


@dataclass(frozen=True)
class Verdict:
    """What was found of a claim, and how long that took."""

    claim: str
    title: str
    says: str
    finding: Finding
    seconds: float

    def lines(self) -> Iterator[str]:
        """As Markdown."""
        yield f"## {self.claim}: {self.finding.verdict}"
        yield ""
        yield self.says
        yield ""
        yield "| what | found, with 95 % interval over seeds | claimed | |"
        yield "|---|---|---|---|"
        for check in self.finding.checks:
            mark = "yes" if check.passed else "**no**"
            yield f"| {check.name} | {check.found} | {check.wanted} | {mark} |"
        yield ""
        yield from (f"- {note}" for note in self.finding.notes)
        table = f"{self.claim}.csv"
        yield f"- {self.seconds:.0f} seconds; every number is in [{table}]({table})."
        yield ""
        yield f"![{self.title}]({self.claim}.png)"
        yield ""

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        checks = [
            {
                "name": check.name,
                "found": check.found.value,
                "interval": [check.found.low, check.found.high],
                "claimed": [check.low, check.high],
                "passed": check.passed,
            }
            for check in self.finding.checks
        ]
        return {
            "claim": self.claim,
            "says": self.says,
            "reproduced": self.finding.reproduced,
            "seconds": round(self.seconds, 1),
            "checks": checks,
            "notes": list(self.finding.notes),
        }


def verdicts(
    claims: Iterable[tuple[str, ModuleType]], effort: Effort, out: Path
) -> Iterator[Verdict]:
    """Run claims and write what is found into `out`, a verdict at a time."""
    out.mkdir(parents=True, exist_ok=True)
    done: list[Verdict] = []
    for name, claim in claims:
        clock = time.perf_counter()
        finding = claim.run(effort)
        says = " ".join((claim.__doc__ or "").partition("\n\n")[0].split())
        verdict = Verdict(name, claim.TITLE, says, finding, time.perf_counter() - clock)
        finding.save(out / name, f"{verdict.title}: {finding.verdict}")
        done.append(verdict)
        _write(done, effort, out)
        yield verdict


def _write(done: list[Verdict], effort: Effort, out: Path) -> None:
    how = "quick" if effort.quick else "full"
    head = [
        f"# Claims of the paper, measured ({how}, {len(effort.seeds)} seeds, proxgt {__version__})",
        "",
    ]
    body = [line for verdict in done for line in verdict.lines()]
    (out / "report.md").write_text("\n".join(head + body))
    about = {"proxgt": __version__, "effort": how, "seeds": list(effort.seeds)}
    every = {"run": about, "verdicts": [verdict.as_json() for verdict in done]}
    # JSON has no infinity or NaN: a check that no seed could answer is null
    text = json.dumps(_finite(every), indent=1, allow_nan=False)
    (out / "verdicts.json").write_text(text + "\n")


def _finite(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _finite(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_finite(value) for value in tree]
    if isinstance(tree, float) and not abs(tree) < float("inf"):
        return None
    return tree
