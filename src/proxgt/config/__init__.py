"""Runs and comparisons as TOML files: see `proxgt.config.job` for how they read."""

from proxgt.config.job import (
    Job,
    Setting,
    build,
    build_setting,
    dump,
    engine_of,
    importable,
    override,
    read,
)

__all__ = [
    "Job",
    "Setting",
    "build",
    "build_setting",
    "dump",
    "engine_of",
    "importable",
    "override",
    "read",
]
