"""Random programs whose buffers XLA:GPU's compiler places, and we."""
