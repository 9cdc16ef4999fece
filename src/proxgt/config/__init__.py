"""Runs and comparisons as TOML files.

job       a file, its tables, and the run they describe: begin here
parts     one table as one object, by the arguments of what it names
catalog   all that a table may name, read off the package
sources   problems and networks from the user's own files and functions
hints     type hints as what a TOML value is checked against
entrants  what is particular to comparisons
errors    what is wrong, and in which table and key
"""

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
