"""The console script `hlo-opt`, and `python -m hloopt.hlo_opt`."""

from __future__ import annotations

from hloopt.__main__ import run_to_the_end


def main() -> None:
    """Run the command line of this process, and end it with its exit code."""
    run_to_the_end("hlo_opt")


if __name__ == "__main__":
    main()
