"""The collective pipeliner on random loops, ours and XLA:GPU's."""
