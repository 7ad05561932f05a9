"""Products of block-scaled tensors: values of a few bits, with a scale for each block of them."""
