"""Small programs for one pass, and what XLA:GPU and ours make of them."""
