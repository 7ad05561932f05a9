"""Seconds of instructions and copies, and the times at which copies may start."""
