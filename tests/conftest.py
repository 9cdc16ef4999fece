"""Fixtures of more than one test file."""

import logging

import jax
import pytest


@pytest.fixture
def compiled(caplog):
    """How many programs JAX has compiled since the test began."""
    with jax.log_compiles(True), caplog.at_level(logging.WARNING):

        def count():
            return sum("Finished XLA compilation" in record.message for record in caplog.records)

        jax.jit(lambda x: x + 1)(0)  # a new function: whatever ran before, this must be seen
        assert count() > 0
        yield count
