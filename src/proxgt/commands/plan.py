"""`proxgt plan`: parameters for an epsilon."""

from __future__ import annotations

import argparse

from proxgt import config
from proxgt.commands.shared import UsageError, setting_of
from proxgt.config.errors import one_line
from proxgt.theory.plans import plan


def run_plan(args: argparse.Namespace) -> int:
    """`proxgt plan`."""
    setting = setting_of(args)
    try:
        found = plan(
            setting.problem,
            setting.network,
            args.epsilon,
            method=args.method,
            minimise=args.minimise,
            sample_cost=args.sample_cost,
            round_cost=args.round_cost,
            guarantee=args.guarantee,
            consensus=args.consensus,
            timed=args.timing,
        )
    except (ValueError, TypeError) as error:
        raise UsageError(f"{args.config}: {one_line(error)}") from error
    print(found)
    print("\nIn the config:\n")
    print(config.dump(found.as_config()), end="")
    return 0
