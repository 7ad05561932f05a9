"""The state of scheduling one computation, which changes node by node."""
