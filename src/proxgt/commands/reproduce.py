"""`proxgt reproduce`: claims of the paper, measured."""

from __future__ import annotations

import argparse

from proxgt.commands import tables
from proxgt.commands.shared import UsageError, console, new_directory, say_saved
from proxgt.config.errors import nearest

NOT_REPRODUCED = 4


def run_reproduce(args: argparse.Namespace) -> int:
    """`proxgt reproduce`."""
    from proxgt import reproduce  # the only command that needs it

    if args.claim not in (*reproduce.CLAIMS, "all"):
        known = (*reproduce.CLAIMS, "all")
        raise UsageError(
            f"unknown claim {args.claim!r}{nearest(args.claim, known)}; known: {', '.join(known)}"
        )
    names = list(reproduce.CLAIMS) if args.claim == "all" else [args.claim]
    out = new_directory(args.out, f"proxgt-reproduce-{args.claim}")
    effort = reproduce.QUICK if args.quick else reproduce.FULL
    failed = []
    for verdict in reproduce.verdicts([(n, reproduce.CLAIMS[n]) for n in names], effort, out):
        console().print(tables.verdict(verdict))
        failed += [] if verdict.finding.reproduced else [verdict.claim]
    say_saved(out)
    if failed:
        console().print(f"Not reproduced: {', '.join(failed)}")
    return NOT_REPRODUCED if failed else 0
