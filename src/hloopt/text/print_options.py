"""What the printer writes; names of fields are those of XLA's HloPrintOptions."""

from __future__ import annotations

from typing import NamedTuple


class PrintOptions(NamedTuple):
    """How a module is written.

    `keep_text` is ours: what nobody changed keeps the text it was read from. Without it, all is
    written as XLA's printer would, in XLA's order; only then `syntax_sugar_async_ops` counts.
    `older_syntax` is ours, too: no text that the parser of jaxlib 0.10.2 does not know
    (`text.older_syntax`); a module that has such text is then written anew as a whole.
    """

    keep_text: bool = True
    print_percent: bool = True
    print_program_shape: bool = True
    print_result_shape: bool = True
    print_operand_shape: bool = False
    print_metadata: bool = True
    print_backend_config: bool = True
    print_control_dependencies: bool = True
    print_large_constants: bool = True
    syntax_sugar_async_ops: bool = True
    older_syntax: bool = False

    @classmethod
    def default(cls) -> PrintOptions:
        """XLA's default form, large constants elided."""
        return cls(keep_text=False, print_large_constants=False)
