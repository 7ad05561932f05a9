"""Cases and judgement of `pass_sweep.py`: each pass alone, and each pipeline."""
