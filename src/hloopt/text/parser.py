"""HLO text to IR: the whole grammar.

Computations in the form XLA prints take the fast lane (`text.fast_lane`); all others are read
here, token by token. Attributes stay text in both lanes; `verifier` reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.collector import collector_paused
from hloopt.diagnostics import HloSyntaxError, Source, did_you_mean
from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import Shape, agree
from hloopt.patterns import pattern
from hloopt.text.cursor import IDENTIFIER
from hloopt.text.fast_lane import read_computation
from hloopt.text.header import HEADER_ATTRIBUTES, check_header_value
from hloopt.text.reading import Reading
from hloopt.text.unique_names import make_names_unique

if TYPE_CHECKING:
    from hloopt.text.comments import Place

_BARE_NAME = pattern(rf"%?{IDENTIFIER}")


def parse_module(source: Source | str, places: list[Place] | None = None) -> Module:
    """Read one HLO module; where its parts stand is added to `places`, if given.

    The text may be all that XLA accepts: with or without a header, a single instruction, free
    white space, comments. Attribute values are not looked into (see `verifier.verify_module`).
    O(length of the text). Raises HloSyntaxError with the place of the first mistake.
    """
    if isinstance(source, str):
        source = Source("<text>", source)
    with collector_paused():
        try:
            return ModuleParser(source, places).parse()
        except HloSyntaxError as error:
            from hloopt.text.foreign import recognized

            raise recognized(source) or error from None


def rewrite_module(text: str) -> str:
    """The text of a module, which is quoted in a header, as XLA writes it there.

    Large constants stay whole. O(length of the text). Raises HloSyntaxError.
    """
    from hloopt.text.module_printer import write_module
    from hloopt.text.print_options import PrintOptions

    options = PrintOptions.default()._replace(print_large_constants=True)
    return write_module(parse_module(text), options, rewrite_module)


class ModuleParser(Reading):
    """Reads one module; its parts are read by functions that it hands itself to."""

    def parse(self) -> Module:
        cursor, module = self.cursor, self.module
        cursor.check_characters()
        cursor.skip()
        if cursor.at_end():
            raise cursor.error("the text is empty: expected an HloModule", code="HLO114")
        if cursor.peek_word("HloModule"):
            self._header()
        elif not cursor.peek_word("ENTRY") and not self._second_token_opens_body():
            return self._single_instruction()
        last: Computation | None = None
        while not cursor.at_end():
            last = self._computation()
            cursor.skip()
        if last is None:
            raise cursor.error("the module has no computation", code="HLO114")
        if module.entry is None:
            module.entry = last
        if not module.name:
            module.name = f"module_{module.entry.name}"
        make_names_unique(module)
        module.is_pristine = True
        return module

    def _header(self) -> None:
        cursor, module = self.cursor, self.module
        start = cursor.position
        cursor.word("HloModule")
        module.name = cursor.name("a module name")
        end = cursor.position
        cursor.skip()
        while cursor.accept(","):
            key_start = cursor.position
            key = cursor.attribute_name()
            if key in module.attributes:
                raise cursor.error(f"attribute '{key}' is given twice", key_start, code="HLO107")
            if key not in HEADER_ATTRIBUTES:
                raise cursor.error(
                    f"unexpected attribute '{key}' of a module",
                    key_start,
                    help=did_you_mean(key, HEADER_ATTRIBUTES),
                    code="HLO105",
                )
            start_of_value = cursor.position
            value = module.attributes[key] = cursor.value(key)
            try:
                check_header_value(key, value, rewrite_module)
            except HloSyntaxError as error:
                raise cursor.error(
                    error.message, start_of_value, help=error.help, code="HLO108"
                ) from None
            end = cursor.position
            cursor.skip()
        module.header_text = cursor.text[start : cursor.position].rstrip()
        self.note_place(start, end, module)
        if cursor.peek_word("FileNames"):
            self._stack_frames()
        cursor.skip()

    def _stack_frames(self) -> None:
        from hloopt.ir.sources.stack_frames import TABLES, StackFrames

        tables = TABLES.match(self.cursor.text, self.cursor.position)
        if tables is None:
            raise self.cursor.error(
                "the stack-frame tables are not complete: expected FileNames, FunctionNames, "
                "FileLocations and StackFrames"
            )
        try:
            StackFrames.parse(tables[0])
        except HloSyntaxError as error:
            raise self.cursor.error(error.message, help=error.help) from None
        self.module.stack_frames = tables[0].rstrip()
        self.cursor.position = tables.end()

    def _second_token_opens_body(self) -> bool:
        match = _BARE_NAME.match(self.cursor.text, self.cursor.position)
        if match is None:
            return False
        return self.cursor.text.startswith("{", self.cursor.after_trivia(match.end()))

    def _single_instruction(self) -> Module:
        from hloopt.text.bodies import read_inline
        from hloopt.text.instruction_parser import InstructionParser

        module, cursor = self.module, self.cursor
        computation = Computation(module, "_")
        parser = InstructionParser(self, computation, read_inline)
        parser.parse_single()
        cursor.skip()
        if not cursor.at_end():
            raise cursor.error("expected the text to end after a single instruction")
        parser.finish(is_pristine=False)
        computation.source_range = (0, len(cursor.text))
        module.name = "_"
        module.attributes["is_scheduled"] = "true"
        module.computations[computation.name] = module.entry = computation
        make_names_unique(module)
        module.is_pristine = True
        return module

    # -- computations -----------------------------------------------------------------------

    def _computation(self) -> Computation:
        cursor, module = self.cursor, self.module
        start = cursor.position
        fast = None
        if self.places is None:
            fast = read_computation(module, cursor.text, start)
        if fast:
            computation, cursor.position = fast
            return computation
        from hloopt.text.bodies import read_body  # few modules need it

        is_entry = cursor.accept_word("ENTRY")
        if is_entry and module.entry:
            raise cursor.error("a second ENTRY computation", start, code="HLO113")
        cursor.skip()
        name_start = cursor.position
        name = cursor.name("a computation name")
        if name in module.computations:
            raise cursor.error(f"computation '%{name}' is defined twice", name_start, code="HLO103")
        cursor.skip()
        computation = Computation(module, name)
        computation.signature, stated = self._signature()
        self.note_place(start, cursor.position, computation)
        cursor.skip()
        open_brace = cursor.position
        read_body(self, computation)
        if stated is not None and not agree(stated, computation.root.shape):
            raise cursor.error(
                f"the signature of computation '%{name}' gives the shape {stated.text}, its root "
                f"%{computation.root.name} has {computation.root.shape.text}",
                open_brace,
                code="HLO117",
            )
        module.computations[name] = computation
        computation.source_range = (start, cursor.position)
        if is_entry:
            module.entry = computation
        return computation

    def _signature(self) -> tuple[str | None, Shape | None]:
        """The text of a signature, and the result's shape; that of the parameters is free."""
        cursor = self.cursor
        if not cursor.looking_at("("):
            return None, None
        start = cursor.position
        cursor.expect("(")
        if not cursor.looking_at(")"):
            cursor.signature_parameter()
            cursor.skip()
            while cursor.accept(","):
                cursor.signature_parameter()
                cursor.skip()
        if not cursor.accept(")"):
            raise cursor.error("expected ',' or ')' in the computation's signature")
        cursor.skip()
        cursor.expect("->")
        stated = cursor.shape()
        return " " + cursor.text[start : cursor.position], stated
