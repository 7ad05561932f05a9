"""Passes that move what is the same in every trip out of loops, or constants into them."""
