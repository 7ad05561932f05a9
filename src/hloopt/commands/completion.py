"""`hloopt completion`: the script by which a shell completes command lines of hloopt."""

from __future__ import annotations

import click

from hloopt.commands.shared.common import HloCommand


@click.command(cls=HloCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the script by which a shell completes command lines of hloopt.

    It completes commands, options, passes, pipelines, targets, rules, codes and files. Bash has to
    be 4.4 or newer. In ~/.bashrc, in ~/.zshrc below compinit, or for fish once in a shell:

    \b
    eval "$(hloopt completion bash)"
    eval "$(hloopt completion zsh)"
    hloopt completion fish > ~/.config/fish/completions/hloopt.fish
    """
    from hloopt.commands.shared.shells import script_of

    click.echo(script_of(shell), nl=False)
    return 0
