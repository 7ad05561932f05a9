"""A search for an assignment that the cost model likes better than that of the heuristics."""
