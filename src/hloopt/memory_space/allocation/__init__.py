"""Places for values: one buffer after the other, one segment of its life after the other."""
