"""`hloopt xla`: XLA's own compilers, one command per question, imported when it runs."""

from __future__ import annotations

import click

from hloopt.commands.shared.common import LazyGroup

COMMANDS: dict[str, str] = {
    "bisect": "the first of XLA's passes after which a program computes something else",
    "compare": "passes of ours against one of XLA's, on the same module",
    "compile": "compile a program, without a device, and show a stage of it",
    "isolate": "run one of XLA's passes on a module",
    "passes": "what each of XLA's passes changed, and how long it took",
}
"""Each command, which is `hloopt.commands.xla.NAME:command`, with its line in `--help`."""


class _Xla(LazyGroup):
    commands_of = COMMANDS
    package = "hloopt.commands.xla"


@click.group(cls=_Xla)
def command() -> None:
    """Ask the real compiler: XLA:CPU of jaxlib, XLA:GPU of its plug-in. No GPU is needed.

    \b
    pip install 'hloopt[xla]'        # --target cpu
    pip install 'hloopt[xla-gpu]'    # --target h100_sxm, b200, a100_sxm_80 …
    """
