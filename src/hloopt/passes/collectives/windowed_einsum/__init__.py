"""Loops over shards of a dot, and dots beside an all-to-all, made ready to overlap."""
