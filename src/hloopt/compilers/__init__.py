"""XLA's own compilers, from wheels: XLA:CPU of jaxlib, and plug-ins of the PJRT C API.

A compiler runs in a child process, which native code may end; what it leaves behind is a folder of
dumps. No device is needed: a plug-in compiles for a description of one.
"""
