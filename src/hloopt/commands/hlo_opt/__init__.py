"""`hlo-opt`: XLA's command of that name, with passes of hloopt.

It takes XLA's flags, so that RUN lines of XLA's tests run as they are written. A flag that would
need more than is here is refused with what to use instead.
"""

from hloopt.commands.hlo_opt.command import command

__all__ = ["command"]
