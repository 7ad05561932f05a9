"""Operations that XLA:GPU runs beside others: collectives, transfers, copies, calls on other
threads."""

from __future__ import annotations

from math import isfinite

from hloopt.analysis.async_operations import (
    OWN_DONES,
    OWN_STARTS,
    SEND_RECV,
    SEND_RECV_DONE,
    SYNC_COLLECTIVES,
    is_on_other_thread,
    wrapped,
)
from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.backend_config import DYNAMIC_SLICE_CONFIG, backend_config, is_sync
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.custom_targets import custom_call_target

COLLECTIVES_GROUP = "_collectives_group"
"""The frontend attribute of an async-start around several collectives."""

STREAM_ANNOTATION = "_xla_stream_annotation"
"""The frontend attribute by which programs choose streams."""


def is_gpu_begin(instruction: Instruction) -> bool:
    """Whether an instruction is the first half of an operation, asynchronous or not."""
    opcode = instruction.opcode
    return opcode is Opcode.ASYNC_START or opcode in OWN_STARTS or opcode in SEND_RECV


def is_gpu_end(instruction: Instruction) -> bool:
    """Whether an instruction is the second half of an operation, asynchronous or not."""
    opcode = instruction.opcode
    return opcode is Opcode.ASYNC_DONE or opcode in OWN_DONES or opcode in SEND_RECV_DONE


def is_gpu_start(instruction: Instruction) -> bool:
    """Whether an instruction begins something that goes on while others run."""
    opcode = instruction.opcode
    if opcode is Opcode.ASYNC_START:
        return _is_asynchronous(instruction)
    if opcode is Opcode.COPY_START:
        return True
    return (opcode in OWN_STARTS or opcode in SEND_RECV) and not is_sync(instruction)


def is_gpu_done(instruction: Instruction) -> bool:
    """Whether an instruction waits for the end of something that `is_gpu_start` began."""
    opcode = instruction.opcode
    if opcode is Opcode.ASYNC_DONE:
        return _is_asynchronous(async_start_of(instruction))
    if opcode is Opcode.COPY_DONE:
        return True
    return (opcode in OWN_DONES or opcode in SEND_RECV_DONE) and not is_sync(
        instruction.operands[0]
    )


def is_gpu_copy(start: Instruction) -> bool:
    """Whether an async-start copies memory: to or from the host, or a slice of something."""
    return _is_host_copy(start) or is_slice_copy(start)


def _is_host_copy(start: Instruction) -> bool:
    operation = wrapped(start)
    if operation.opcode is not Opcode.FUSION:
        return False
    reads_host = bool(operation.operands) and operation.operands[0].shape.is_on_host
    return reads_host or operation.shape.is_on_host


def is_slice_copy_on_device(instruction: Instruction) -> bool:
    """Whether it begins or ends a copy of a slice, on the thread it is on, that no host sees."""
    if instruction.opcode not in (Opcode.ASYNC_START, Opcode.ASYNC_DONE):
        return False
    start = async_start_of(instruction)
    return is_slice_copy(start) and not (is_on_other_thread(start) or _is_host_copy(start))


def starts_slice_update(instruction: Instruction) -> bool:
    """Whether an instruction starts a fusion that updates a slice."""
    if instruction.opcode is not Opcode.ASYNC_START:
        return False
    fusion = wrapped(instruction)
    return fusion.opcode is Opcode.FUSION and any(
        i.opcode is Opcode.DYNAMIC_UPDATE_SLICE for i in fusion.called[0].instructions
    )


def is_slice_copy(start: Instruction) -> bool:
    """Whether an async-start copies a slice of a larger array that a loop walks through."""
    operation = wrapped(start)
    if operation.opcode is not Opcode.FUSION:
        return False
    hero = operation.called[0].root
    while hero.opcode in (Opcode.BITCAST, Opcode.RESHAPE):
        hero = hero.operands[0]
    if fusion_kind_of(operation) == "kCustom":
        config = backend_config(operation).get("fusion_backend_config", {})
        name = config.get("custom_fusion_config", {}).get("name")
        return name == "dynamic_slice_fusion" and hero.opcode is Opcode.COPY
    return hero.opcode in (
        Opcode.DYNAMIC_SLICE,
        Opcode.DYNAMIC_UPDATE_SLICE,
    ) and DYNAMIC_SLICE_CONFIG in hero.attributes.get("backend_config", "")


def _is_asynchronous(start: Instruction) -> bool:
    if wrapped(start).opcode in SYNC_COLLECTIVES or is_collectives_group(start):
        return not is_sync(start)
    return is_on_other_thread(start) or is_gpu_copy(start)


def is_collectives_group(start: Instruction) -> bool:
    """Whether an async-start wraps several collectives that run as one."""
    return frontend_attribute(start, COLLECTIVES_GROUP) is not None


def is_custom_collective(instruction: Instruction) -> bool:
    """Whether a generic start or done is itself annotated as a collective, whatever it wraps."""
    if instruction.opcode not in (Opcode.ASYNC_START, Opcode.ASYNC_DONE):
        return False
    stream = frontend_attribute(instruction, STREAM_ANNOTATION)
    return stream is not None and stream.lower() == "collective"


def is_gpu_gemm(instruction: Instruction) -> bool:
    """Whether cuBLAS or Triton computes it as a matrix product."""
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return custom_call_target(instruction) == "__cublas$gemm"
    if instruction.opcode is not Opcode.FUSION:
        return False
    kind = backend_config(instruction).get("fusion_backend_config", {}).get("kind")
    return kind in ("__triton_gemm", "__triton_nested_gemm_fusion")


def is_memory_bound(instruction: Instruction) -> bool:
    """Whether an instruction waits for memory most of the time.

    By the first usable `reification_cost` of its backend_config, else by its opcode: what computes
    products, and what does nothing itself, is not. O(body) for a fusion.
    """
    for cost in backend_config(instruction).get("reification_cost", ()):
        compute = cost.get("compute_time_us", 0.0)
        memory = cost.get("memory_access_time_us", 0.0)
        usable = all(isfinite(time) and time >= 0 for time in (compute, memory))
        if usable and (compute or memory):
            return bool(memory > compute)
    opcode = instruction.opcode
    if opcode is Opcode.FUSION:
        return not any(i.opcode in _PRODUCTS for i in instruction.called[0].instructions)
    if opcode is Opcode.CUSTOM_CALL:
        return not custom_call_target(instruction).startswith(_PRODUCT_TARGETS)
    return opcode not in _NOT_MEMORY_BOUND


_PRODUCTS = (Opcode.DOT, Opcode.CONVOLUTION)
_PRODUCT_TARGETS = ("__cublas$", "__cudnn$conv")
_NOT_MEMORY_BOUND = frozenset(
    (
        *_PRODUCTS,
        *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.BITCAST, Opcode.CONSTANT, Opcode.PARAMETER, Opcode.TUPLE, Opcode.BROADCAST),
        *(Opcode.IOTA, Opcode.ASYNC_START, Opcode.ASYNC_DONE),
        *(*OWN_STARTS, *OWN_DONES, *SEND_RECV, *SEND_RECV_DONE),
    )
)
