"""Steps that overlap-search made beside those of XLA:GPU."""
