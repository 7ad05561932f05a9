"""JAX programs whose collectives XLA's partitioner tells the origins of."""
