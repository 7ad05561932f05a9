"""Random programs to be scheduled, asked of XLA:GPU's compiler and of us."""
