"""The rules of XLA:GPU in buffer assignment."""
