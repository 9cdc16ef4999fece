"""A progress bar with the metric and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(wanted: bool, steps: int) -> Iterator[Callable[[Any], None]]:
    """A callback that shows each record, or one that does nothing."""
    if not wanted:
        yield lambda snapshot: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("step {task.completed:>7.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("metric {task.fields[metric]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=steps, metric="")

        def show(snapshot: Any) -> None:
            bar.update(task, completed=snapshot.row.step, metric=f"{snapshot.row.metric:.3e}")

        yield show
