"""Our copies beside those of XLA:CPU: see copy_agreement.py."""
