"""Reports on programs that were run: values, traces, equivalence."""
