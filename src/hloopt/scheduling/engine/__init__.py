"""The scheduling of computations from node to node, and notes of why it went that way."""
