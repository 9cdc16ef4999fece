"""Plans as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxgt.theory.choices import Choice
    from proxgt.theory.plans import Plan

_HEADS = ("method", "consensus", "alpha", "b", "q", "B", "T", "samples", "rounds", "seconds")


def plan_table(plan: Plan) -> str:
    """What a plan says, a row for every choice, its own marked."""
    kind = "guaranteed" if plan.guarantee else "practical"
    best, p = plan.choice, plan.choice.parameters
    lines = [
        f"Plan for epsilon = {plan.epsilon:g}, {kind}, fewest {plan.minimise}: "
        f"ProxGT-{best.name} with {_mixing(best)}",
        "",
        *_rows(plan),
        "",
        f"step size {p.step_size:.4g}; binds: {best.binding}",
        f"lambda = {p.mixing.contraction:.3g} left of the disagreement by K = {p.mixing.rounds}",
    ]
    if best.bound is not None:
        lines += [f"{best.bound}", f"  epsilon^2 = {plan.epsilon**2:.4g}"]
    if plan.rests_on:
        lines.append(f"guaranteed as far as these estimates are right: {', '.join(plan.rests_on)}")
    if plan.pilot is not None:
        ended = "extrapolated from" if plan.pilot.extrapolated else "reached in"
        lines.append(
            f"calibrated on a pilot, {ended} {plan.pilot.steps} steps and "
            f"{plan.pilot.samples:g} samples per node"
        )
    return "\n".join([*lines, "", repr(plan.constants)])


def _rows(plan: Plan) -> list[str]:
    rows = [_HEADS, *(_cells(choice) for choice in plan.choices)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADS))]
    marks = [" ", *("*" if choice is plan.choice else " " for choice in plan.choices)]
    return [
        f"{mark} " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for mark, row in zip(marks, rows, strict=True)
    ]


def _mixing(choice: Choice) -> str:
    return f"{type(choice.consensus).__name__}({choice.parameters.mixing.rounds})"


def _cells(choice: Choice) -> tuple[str, ...]:
    p = choice.parameters
    seconds = "-" if choice.seconds is None else f"{choice.seconds:.3g}"
    return (
        choice.name,
        _mixing(choice),
        f"{p.step_size:.3g}",
        str(p.batch),
        "-" if p.period is None else str(p.period),
        "-" if p.refresh is None else str(p.refresh),
        str(p.steps),
        f"{p.samples:.4g}",
        str(p.rounds),
        seconds,
    )
