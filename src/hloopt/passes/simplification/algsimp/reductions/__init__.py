"""Rules for sums of many elements: reduces, windows, dots and convolutions."""
