"""Folders of dumps: what XLA wrote while it compiled, for many modules, hosts and runs."""
