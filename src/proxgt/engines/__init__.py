"""Engines: who holds which rows, and what carries the messages."""
