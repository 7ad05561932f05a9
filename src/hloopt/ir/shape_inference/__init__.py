"""The result shape of an operation, worked out from its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloSyntaxError, HloVerifyError
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference.arrangement import (
    infer_broadcast,
    infer_concatenate,
    infer_pad,
    infer_reverse,
    infer_sort,
    infer_transpose,
)
from hloopt.ir.shape_inference.control_flow import (
    infer_add_dependency,
    infer_call,
    infer_conditional,
    infer_get_tuple_element,
    infer_operand,
    infer_tuple,
    infer_while,
)
from hloopt.ir.shape_inference.elementwise import (
    BINARY,
    UNARY,
    infer_binary,
    infer_clamp,
    infer_select,
    infer_unary,
)
from hloopt.ir.shape_inference.operation import Operation, show
from hloopt.ir.shape_inference.reduction import infer_map, infer_reduce
from hloopt.ir.shape_inference.stated import STATED_RULES, with_stated_type
from hloopt.ir.shapes.shape import Shape, agree, array_shape

if TYPE_CHECKING:
    from hloopt.ir.shape_inference.callee import Callee

__all__ = ["check_shape", "infer_shape", "infer_stated_shape"]

_Rule = Callable[[Operation], Shape]


def infer_shape(
    opcode: Opcode,
    operands: Sequence[Shape],
    attributes: Mapping[str, str],
    called: Sequence[Callee] = (),
) -> Shape:
    """The result shape of an operation whose shape HLO text may leave out.

    `attributes` are raw texts by name; `called` holds computations in the order of
    `Instruction.called`. The layout is the one XLA chooses when it reads such text.
    Raises HloSyntaxError for an opcode that needs its shape stated, HloVerifyError for operands,
    attributes or computations that do not fit. O(ranks), with callees O(their parameters).
    """
    rule = _find_rule(opcode)
    if rule is None:
        raise HloSyntaxError(f"cannot infer shape for opcode: {opcode}", code="HLO111")
    inferred = _apply(rule, Operation(opcode, operands, attributes, called))
    for leaf in (inferred,) if inferred.is_array else inferred.leaves():
        if max(leaf.dimensions, default=0) >= _TOO_LARGE:
            raise HloVerifyError(
                f"The result would be {show(inferred)}: a size has 63 bits.", code="HLO301"
            )
    return inferred


_TOO_LARGE = 1 << 63


def _apply(rule: _Rule, operation: Operation) -> Shape:
    try:
        return rule(operation)
    except HloVerifyError as error:
        raise error.coded("HLO301") from None


def check_shape(
    opcode: Opcode,
    stated: Shape,
    operands: Sequence[Shape],
    attributes: Mapping[str, str],
    called: Sequence[Callee] = (),
    *,
    any_precision: bool = False,
) -> None:
    """Check a stated result shape against the one operands, attributes and callees give.

    Layouts and dynamism are ignored; with `any_precision` floating-point types may differ in
    width. Opcodes whose shape operands do not decide pass. Raises HloVerifyError where shapes
    contradict or operands do not fit, HloSyntaxError for a malformed attribute. O(ranks), with
    callees O(their parameters).
    """
    inferred = infer_stated_shape(opcode, stated, operands, attributes, called)
    if inferred is not None and not agree(stated, inferred, any_precision=any_precision):
        raise HloVerifyError(
            f"Expected instruction to have shape equal to {show(inferred)}, "
            f"actual shape is {show(stated)}",
            code="HLO300",
        )


def infer_stated_shape(
    opcode: Opcode,
    stated: Shape,
    operands: Sequence[Shape],
    attributes: Mapping[str, str],
    called: Sequence[Callee] = (),
) -> Shape | None:
    """The result shape of an operation whose shape is stated; None where nothing decides it.

    What operands and attributes leave open, such as the element type of a conversion, is taken
    from `stated`. Raises as `check_shape` does.
    """
    rule = _find_stated_rule(opcode)
    if rule is None:
        return None
    operation = Operation(opcode, operands, attributes, called, stated)
    inferred = _apply(rule, operation)
    return with_stated_type(operation, inferred) if opcode in _STATED_TYPE else inferred


def _infer_token(operation: Operation) -> Shape:
    return array_shape("token")


def _infer_device_id(operation: Operation) -> Shape:
    return array_shape("u32")


_RULES: dict[Opcode, _Rule] = {
    **dict.fromkeys(UNARY, infer_unary),
    **dict.fromkeys(BINARY, infer_binary),
    Opcode.COPY: infer_operand,
    Opcode.DOMAIN: infer_operand,
    Opcode.ADD_DEPENDENCY: infer_add_dependency,
    Opcode.AFTER_ALL: _infer_token,
    Opcode.PARTITION_ID: _infer_device_id,
    Opcode.REPLICA_ID: _infer_device_id,
    Opcode.BROADCAST: infer_broadcast,
    Opcode.TRANSPOSE: infer_transpose,
    Opcode.REVERSE: infer_reverse,
    Opcode.CONCATENATE: infer_concatenate,
    Opcode.PAD: infer_pad,
    Opcode.SORT: infer_sort,
    Opcode.REDUCE: infer_reduce,
    Opcode.MAP: infer_map,
    Opcode.SELECT: infer_select,
    Opcode.CLAMP: infer_clamp,
    Opcode.TUPLE: infer_tuple,
    Opcode.GET_TUPLE_ELEMENT: infer_get_tuple_element,
    Opcode.CALL: infer_call,
    Opcode.WHILE: infer_while,
    Opcode.CONDITIONAL: infer_conditional,
}

_RULES_BY_NAME = {
    Opcode.DOT: "contraction:infer_dot",
    Opcode.RAGGED_DOT: "contraction:infer_ragged_dot",
    Opcode.SCALED_DOT: "contraction:infer_scaled_dot",
    Opcode.CONVOLUTION: "windows:infer_convolution",
    Opcode.REDUCE_WINDOW: "windows:infer_reduce_window",
    Opcode.SELECT_AND_SCATTER: "windows:infer_select_and_scatter",
    Opcode.GATHER: "indexing:infer_gather",
    Opcode.SCATTER: "indexing:infer_scatter",
    Opcode.FFT: "linear_algebra:infer_fft",
    Opcode.CHOLESKY: "linear_algebra:infer_cholesky",
    Opcode.TRIANGULAR_SOLVE: "linear_algebra:infer_triangular_solve",
    Opcode.BATCH_NORM_TRAINING: "linear_algebra:infer_batch_norm_training",
    Opcode.BATCH_NORM_INFERENCE: "linear_algebra:infer_batch_norm_inference",
    Opcode.BATCH_NORM_GRAD: "linear_algebra:infer_batch_norm_grad",
    Opcode.GET_DIMENSION_SIZE: "sizes:infer_get_dimension_size",
    Opcode.SET_DIMENSION_SIZE: "sizes:infer_set_dimension_size",
    Opcode.TOPK: "sizes:infer_topk",
    Opcode.SCAN: "sizes:infer_scan",
}
"""Rules imported when they are first needed, as `module:function`: most modules need few."""

_STATED_RULES_BY_NAME = {
    Opcode.ALL_REDUCE: "collectives:infer_unchanged",
    Opcode.ALL_REDUCE_START: "collectives:infer_unchanged",
    Opcode.COLLECTIVE_BROADCAST: "collectives:infer_collective_broadcast",
    Opcode.ALL_GATHER: "collectives:infer_all_gather",
    Opcode.ALL_GATHER_START: "collectives:infer_all_gather_start",
    Opcode.REDUCE_SCATTER: "collectives:infer_reduce_scatter",
    Opcode.ALL_TO_ALL: "collectives:infer_all_to_all",
    Opcode.RAGGED_ALL_TO_ALL: "collectives:infer_ragged_all_to_all",
    Opcode.COLLECTIVE_PERMUTE: "collectives:infer_collective_permute",
    Opcode.COLLECTIVE_PERMUTE_START: "collectives:infer_collective_permute_start",
    Opcode.SEND: "transfers:infer_send",
    Opcode.SEND_DONE: "transfers:infer_send_done",
    Opcode.RECV: "transfers:infer_recv",
    Opcode.RECV_DONE: "transfers:infer_recv_done",
    Opcode.INFEED: "transfers:infer_infeed",
    Opcode.OUTFEED: "transfers:infer_outfeed",
}
"""The same for rules that read the stated shape, as those in `STATED_RULES` do."""


@cache
def _find_rule(opcode: Opcode) -> _Rule | None:
    """The rule by which an opcode's shape follows from its operands alone."""
    return _RULES.get(opcode) or _imported(_RULES_BY_NAME.get(opcode))


@cache
def _find_stated_rule(opcode: Opcode) -> _Rule | None:
    """The rule for an opcode whose shape is stated."""
    own = STATED_RULES.get(opcode) or _imported(_STATED_RULES_BY_NAME.get(opcode))
    return own or _find_rule(opcode)


def _imported(name: str | None) -> _Rule | None:
    if name is None:
        return None
    from importlib import import_module

    module, _, function = name.partition(":")
    rule: _Rule = getattr(import_module(f"{__name__}.{module}"), function)
    return rule


_STATED_TYPE = frozenset((Opcode.DOT, Opcode.RAGGED_DOT, Opcode.SCALED_DOT, Opcode.CONVOLUTION))
"""Opcodes that may accumulate in, and return, another element type than their operands'."""
