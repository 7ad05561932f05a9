"""Passes that change how reductions and scans are computed."""
