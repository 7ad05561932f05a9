"""Comparing schedules with those that XLA made."""
