"""Whether results of memory space assignment are valid, found from its specification alone.

The checker reads a module before and after the pass, the options and what the pass reports. It
works out itself when every part of alternate memory holds a value that is still needed, by a
dataflow and a flattened schedule of its own: it shares nothing but the types of options and reports
with hloopt.memory_space, hloopt.memory and hloopt.analysis; a mistake there is no mistake here.
"""
