"""Sweeps over numbered inputs: processes, limits, a state on disk, a report."""
