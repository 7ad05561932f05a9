"""Memory space assignment: which buffers lie in a small fast memory, and when they are copied."""
