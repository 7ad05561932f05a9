"""Print options and styles, named as in XLA's HloPrintOptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hloopt.diagnostics import HloError, did_you_mean


class PrintOptions(NamedTuple):
    """Print options of a module. Field names and defaults are XLA's but for the first five."""

    keep_text: bool = False
    """Instructions that were not changed keep the text they were read from."""
    keep_order: bool = False
    """Computations and instructions stay in the order of the text where that is possible."""
    always_readable: bool = False
    """Minus zero as `-0.0`, since XLA reads `-0` as plus zero, and `X-start` only where that says
    all."""
    older_syntax: bool = False
    """No text that the parser of jaxlib 0.10.2 does not know (`text.older_syntax`); a module that
    has such text is then written anew as a whole."""
    inline_source: bool = False
    """`/*source=model.py:12*/` behind each instruction whose metadata names a source line."""
    print_percent: bool = True
    print_program_shape: bool = True
    print_result_shape: bool = True
    print_operand_shape: bool = False
    print_operand_names: bool = True
    print_operand_index_annotation: bool = True
    """`/*index=5*/` before every fifth operand."""
    compact_operands: bool = False
    """The first four operands and how many follow."""
    include_layout_in_shapes: bool = True
    print_large_constants: bool = False
    print_only_essential_constants: bool = False
    """Constants that are all 0, all 1 or of integers; `{...}` for others."""
    print_metadata: bool = True
    print_backend_config: bool = True
    print_infeed_outfeed_config: bool = True
    print_control_dependencies: bool = True
    print_extra_attributes: bool = True
    """Attributes that belong to the opcode."""
    print_full_bodies: bool = False
    """Called computations in place of their names."""
    print_full_replica_group_list: bool = False
    """Replica groups as lists, whatever form they have."""
    print_ids: bool = True
    """Names of module and computations, numbers behind names, execution threads."""
    syntax_sugar_async_ops: bool = True
    """`X-start` for an async-start around one X."""
    canonicalize_instruction_names: bool = False
    """Names `tmp_0`, `tmp_1`, … in each computation."""
    canonicalize_computations: bool = False
    """Computations in the order in which they were made."""

    def unreadable(self) -> list[str]:
        """Options by which the text lacks what every reader of HLO needs, XLA's too."""
        kept = ("print_result_shape", "print_operand_names", "print_extra_attributes", "print_ids")
        found = [f"{name}=false" for name in kept if not getattr(self, name)]
        if self.compact_operands:
            found.append("compact_operands=true")
        if self.print_full_bodies and self.print_program_shape:
            found.append("print_full_bodies=true with print_program_shape=true")
        return found

    @classmethod
    def keep(cls) -> PrintOptions:
        """The text as it was read, but for what has changed."""
        return cls(
            keep_text=True,
            keep_order=True,
            print_large_constants=True,
            syntax_sugar_async_ops=False,
        )

    @classmethod
    def default(cls) -> PrintOptions:
        """XLA's default: large constants are elided."""
        return cls()

    @classmethod
    def formatted(cls) -> PrintOptions:
        """As `default`, with nothing left out and nothing moved that need not be."""
        return cls(keep_order=True, always_readable=True, print_large_constants=True)

    @classmethod
    def short_parsable(cls) -> PrintOptions:
        """Short text for readers: no metadata, no control dependencies."""
        return cls(
            print_percent=False,
            print_program_shape=False,
            print_operand_index_annotation=False,
            print_large_constants=True,
            print_metadata=False,
            print_control_dependencies=False,
        )

    @classmethod
    def canonical(cls) -> PrintOptions:
        """The graph without names and annotations."""
        return cls(
            print_percent=False,
            print_program_shape=False,
            print_operand_shape=True,
            print_operand_index_annotation=False,
            print_metadata=False,
            print_backend_config=False,
            print_control_dependencies=False,
            print_full_bodies=True,
            canonicalize_instruction_names=True,
        )

    @classmethod
    def fingerprint(cls) -> PrintOptions:
        """Text that depends on the computation alone: `canonical` without ids, with essential
        constants only."""
        return cls.canonical()._replace(
            print_only_essential_constants=True,
            print_infeed_outfeed_config=False,
            print_full_replica_group_list=True,
            print_ids=False,
            canonicalize_computations=True,
        )

    @classmethod
    def module_fingerprint(cls) -> PrintOptions:
        """`fingerprint` without operand shapes."""
        return cls.fingerprint()._replace(print_operand_shape=False)


STYLES: dict[str, Callable[[], PrintOptions]] = {
    "keep": PrintOptions.keep,
    "formatted": PrintOptions.formatted,
    "default": PrintOptions.default,
    "short-parsable": PrintOptions.short_parsable,
    "canonical": PrintOptions.canonical,
    "fingerprint": PrintOptions.fingerprint,
    "module-fingerprint": PrintOptions.module_fingerprint,
}
"""Styles by name."""


def print_options(style: str, changes: Iterable[str] = ()) -> PrintOptions:
    """The options of a style with changes `NAME`, `NAME=true`, `NAME=false`. Raises HloError."""
    if style not in STYLES:
        hint = did_you_mean(style, STYLES) or f"styles: {', '.join(STYLES)}"
        raise HloError(f"no print style '{style}'", help=hint, code="HLO010")
    options = STYLES[style]()
    for change in changes:
        name, separator, value = change.partition("=")
        name = name.strip().replace("-", "_")
        if name not in PrintOptions._fields:
            raise HloError(
                f"no print option '{name}'",
                help=did_you_mean(name, PrintOptions._fields)
                or f"print options: {', '.join(PrintOptions._fields)}",
                code="HLO010",
            )
        if separator and value not in ("true", "false"):
            raise HloError(f"print option '{name}' is true or false, not '{value}'", code="HLO010")
        options = options._replace(**{name: value != "false"})
    return options
