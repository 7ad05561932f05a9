"""Passes that take back what compilers decided, so that a module can be compiled anew."""
