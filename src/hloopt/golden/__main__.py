"""FileCheck as a process, `python -m hloopt.golden`, for RUN lines that a shell or lit runs."""

from __future__ import annotations

import sys

from hloopt.diagnostics import HloError, render_error
from hloopt.golden.filecheck import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except HloError as error:
        sys.exit(render_error(error))
