"""The fingerprint of a module: a hash over its data flow, names out, bottom up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hloopt.analysis.content import Content
from hloopt.analysis.fingerprint.digests import digest_of, digest_of_texts
from hloopt.analysis.fingerprint.instances import tell_apart
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_computation_order, stable_order
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.sources.stack_frames import StackFrames

LEFT_OUT = frozenset(("names", "metadata", "locations"))
"""Classes of content that a fingerprint leaves out unless told."""
_ALGORITHM = "h1"
"""Stands before each fingerprint; another one for whatever changes fingerprints."""


def fingerprint(module: Module, *, ignored: Iterable[str] = LEFT_OUT) -> str:
    """A hash of a module without the classes of content in `ignored`: `h1-` and 32 hex digits.

    It is equal for two modules where `diff` finds nothing that counts, and in every process. The
    classes are part of it: those with other classes left out are never equal. O(edges · log)
    and the length of constants, no recursion. Raises HloVerifyError for a cycle.
    """
    return f"{_ALGORITHM}-{_Fingerprinter(frozenset(ignored)).module(module).hex()}"


class _Fingerprinter:
    """Computes digests of instructions, computations and one module."""

    def __init__(self, ignored: frozenset[str]) -> None:
        self._content = Content(ignored)
        self._counts_names = "names" not in ignored
        self._counts_control = "control" not in ignored
        self._counts_order = "order" not in ignored
        self._computations: dict[Computation, bytes] = {}
        self._shapes: dict[Shape, str] = {}
        self._labels: dict[Hashable, bytes] = {}

    def module(self, module: Module) -> bytes:
        """The digest of header, entry and all computations, called or not."""
        for computation in stable_computation_order(module):  # callees first
            self._computations[computation] = self._computation(computation)
        header = [text for item in sorted(self._content.header(module).items()) for text in item]
        ignored = self._content.ignored
        return digest_of(
            b"m",
            digest_of_texts(b"i", sorted(ignored))
            + digest_of_texts(b"h", header)
            + digest_of_texts(b"f", self._tables(module))
            + digest_of_texts(b"n", [module.name] if self._counts_names else [])
            + self._computations[module.entry]
            + b"".join(sorted(self._computations.values())),
        )

    def _tables(self, module: Module) -> list[str]:
        """The tables of stack frames, where they count."""
        is_ignored = not self._content.ignored.isdisjoint(("metadata", "locations"))
        if is_ignored or not module.stack_frames:
            return []
        return [StackFrames.parse(module.stack_frames).format()]

    def _computation(self, computation: Computation) -> bytes:
        values: dict[Instruction, bytes] = {}
        order = stable_order(computation)
        for instruction in order:
            parts = [self._label(instruction)]
            parts += [values[operand] for operand in instruction.operands]
            if self._counts_control and instruction.control_predecessors:
                before = sorted(values[each] for each in instruction.control_predecessors)
                parts += b"c", *before
            values[instruction] = digest_of(b"v", b"".join(parts))
        instances = tell_apart(order, values, counts_control=self._counts_control)
        every = [instances[instruction] for instruction in computation.instructions]
        is_scheduled = self._counts_order and computation.module.is_scheduled
        names = [computation.name] if self._counts_names else []
        return digest_of(
            b"b",
            digest_of_texts(b"t", [computation.execution_thread, *names])
            + instances[computation.root]
            + b"".join(every if is_scheduled else sorted(every)),
        )

    def _label(self, instruction: Instruction) -> bytes:
        """The digest of all there is to an instruction but its operands. Once per label."""
        content = self._content
        key = (
            instruction.opcode,
            instruction.shape,
            content.exact_attributes(instruction),
            content.exact_payload(instruction),
            tuple([self._computations[called] for called in instruction.called]),
            instruction.name if self._counts_names else None,
        )
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = self._digest_of_label(instruction, *key[2:5])
        return found

    def _digest_of_label(
        self,
        instruction: Instruction,
        attributes: tuple[tuple[str, str], ...],
        payload: str,
        called: tuple[bytes, ...],
    ) -> bytes:
        shape = instruction.shape
        if shape not in self._shapes:
            self._shapes[shape] = self._content.shape(shape).text
        texts = [instruction.opcode.value, self._shapes[shape], payload]
        if self._counts_names:
            texts.append(instruction.name)
        texts += [text for item in attributes for text in item]
        return digest_of(b"l", digest_of_texts(b"a", texts) + b"".join(called))
