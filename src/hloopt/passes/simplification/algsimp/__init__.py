"""The algebraic simplifier: rules by subject, and the pass that applies them."""
