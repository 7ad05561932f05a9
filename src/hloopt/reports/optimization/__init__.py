"""Reports of the result of a search: step and memory, and each decision."""
