"""Rules for arithmetic: one module for each group of opcodes."""
