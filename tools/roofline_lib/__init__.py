"""Parts of tools/roofline_agreement.py."""
