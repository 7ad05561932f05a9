"""Which of XLA's flags make a step shorter: compiles under many, judged by a model of time."""
