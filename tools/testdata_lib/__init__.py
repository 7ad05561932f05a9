"""The programs that tools/make_testdata.py compiles.

HLO metadata holds the lines of their functions: an edit that moves these changes testdata/.
"""
