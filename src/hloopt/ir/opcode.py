"""The opcodes of HLO, and what holds for each whatever its operands."""

from __future__ import annotations

from enum import StrEnum


class Opcode(StrEnum):
    """An operation; each member equals its name in HLO text."""

    ABS = "abs"
    ACOS = "acos"
    ACOSH = "acosh"
    ADD = "add"
    ADD_DEPENDENCY = "add-dependency"
    AFTER_ALL = "after-all"
    ALL_GATHER = "all-gather"
    ALL_GATHER_DONE = "all-gather-done"
    ALL_GATHER_START = "all-gather-start"
    ALL_REDUCE = "all-reduce"
    ALL_REDUCE_DONE = "all-reduce-done"
    ALL_REDUCE_START = "all-reduce-start"
    ALL_TO_ALL = "all-to-all"
    AND = "and"
    ASIN = "asin"
    ASINH = "asinh"
    ASYNC_DONE = "async-done"
    ASYNC_START = "async-start"
    ASYNC_UPDATE = "async-update"
    ATAN2 = "atan2"
    ATANH = "atanh"
    BATCH_NORM_GRAD = "batch-norm-grad"
    BATCH_NORM_INFERENCE = "batch-norm-inference"
    BATCH_NORM_TRAINING = "batch-norm-training"
    BITCAST = "bitcast"
    BITCAST_CONVERT = "bitcast-convert"
    BROADCAST = "broadcast"
    CALL = "call"
    CBRT = "cbrt"
    CEIL = "ceil"
    CHOLESKY = "cholesky"
    CLAMP = "clamp"
    COLLECTIVE_BROADCAST = "collective-broadcast"
    COLLECTIVE_PERMUTE = "collective-permute"
    COLLECTIVE_PERMUTE_DONE = "collective-permute-done"
    COLLECTIVE_PERMUTE_START = "collective-permute-start"
    COMPARE = "compare"
    COMPLEX = "complex"
    CONCATENATE = "concatenate"
    CONDITIONAL = "conditional"
    CONSTANT = "constant"
    CONVERT = "convert"
    CONVOLUTION = "convolution"
    COPY = "copy"
    COPY_DONE = "copy-done"
    COPY_START = "copy-start"
    COSH = "cosh"
    COSINE = "cosine"
    COUNT_LEADING_ZEROS = "count-leading-zeros"
    CUSTOM_CALL = "custom-call"
    DIVIDE = "divide"
    DOMAIN = "domain"
    DOT = "dot"
    DYNAMIC_RESHAPE = "dynamic-reshape"
    DYNAMIC_SLICE = "dynamic-slice"
    DYNAMIC_UPDATE_SLICE = "dynamic-update-slice"
    ERF = "erf"
    EXPONENTIAL = "exponential"
    EXPONENTIAL_MINUS_ONE = "exponential-minus-one"
    FFT = "fft"
    FLOOR = "floor"
    FUSION = "fusion"
    GATHER = "gather"
    GET_DIMENSION_SIZE = "get-dimension-size"
    GET_TUPLE_ELEMENT = "get-tuple-element"
    IMAG = "imag"
    INFEED = "infeed"
    IOTA = "iota"
    IS_FINITE = "is-finite"
    LOG = "log"
    LOG_PLUS_ONE = "log-plus-one"
    LOGISTIC = "logistic"
    MAP = "map"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    MULHI = "mulhi"
    MULTIPLY = "multiply"
    NEGATE = "negate"
    NOT = "not"
    OPT_BARRIER = "opt-barrier"
    OR = "or"
    OUTFEED = "outfeed"
    PAD = "pad"
    PARAMETER = "parameter"
    PARTITION_ID = "partition-id"
    POPCNT = "popcnt"
    POWER = "power"
    RAGGED_ALL_TO_ALL = "ragged-all-to-all"
    RAGGED_DOT = "ragged-dot"
    REAL = "real"
    RECV = "recv"
    RECV_DONE = "recv-done"
    REDUCE = "reduce"
    REDUCE_PRECISION = "reduce-precision"
    REDUCE_SCATTER = "reduce-scatter"
    REDUCE_WINDOW = "reduce-window"
    REMAINDER = "remainder"
    REPLICA_ID = "replica-id"
    RESHAPE = "reshape"
    REVERSE = "reverse"
    RNG = "rng"
    RNG_BIT_GENERATOR = "rng-bit-generator"
    RNG_GET_AND_UPDATE_STATE = "rng-get-and-update-state"
    ROUND_NEAREST_AFZ = "round-nearest-afz"
    ROUND_NEAREST_EVEN = "round-nearest-even"
    RSQRT = "rsqrt"
    SCALED_DOT = "scaled-dot"
    SCAN = "scan"
    SCATTER = "scatter"
    SELECT = "select"
    SELECT_AND_SCATTER = "select-and-scatter"
    SEND = "send"
    SEND_DONE = "send-done"
    SET_DIMENSION_SIZE = "set-dimension-size"
    SHIFT_LEFT = "shift-left"
    SHIFT_RIGHT_ARITHMETIC = "shift-right-arithmetic"
    SHIFT_RIGHT_LOGICAL = "shift-right-logical"
    SIGN = "sign"
    SINE = "sine"
    SINH = "sinh"
    SLICE = "slice"
    SORT = "sort"
    SQRT = "sqrt"
    STOCHASTIC_CONVERT = "stochastic-convert"
    SUBTRACT = "subtract"
    TAN = "tan"
    TANH = "tanh"
    TOPK = "topk"
    TRANSPOSE = "transpose"
    TRIANGULAR_SOLVE = "triangular-solve"
    TUPLE = "tuple"
    WHILE = "while"
    XOR = "xor"


OPCODES: dict[str, Opcode] = {opcode.value: opcode for opcode in Opcode}
"""Every opcode by its name in HLO text."""

COMMUTATIVE = frozenset(
    (
        *(Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM),
        *(Opcode.AND, Opcode.OR, Opcode.XOR, Opcode.MULHI),
    )
)

ASYNC = frozenset((Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE))

COLLECTIVES = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_REDUCE_DONE),
        *(Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_GATHER_DONE),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START),
        *(Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.COLLECTIVE_BROADCAST),
        *(Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL, Opcode.REDUCE_SCATTER),
    )
)

STARTS = frozenset(
    (
        *(Opcode.ALL_REDUCE_START, Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START),
        *(Opcode.COPY_START, Opcode.ASYNC_START, Opcode.SEND, Opcode.RECV),
    )
)
"""Opcodes that begin an operation for which another instruction waits."""

PERMUTING = (Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START)

CONTROL_FLOW_CALLERS = frozenset((Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, *ASYNC))
"""Opcodes that run the computations they call as part of the caller's control flow."""

CONTRACTIONS = frozenset((Opcode.DOT, Opcode.CONVOLUTION, Opcode.RAGGED_DOT, Opcode.SCALED_DOT))
"""Sums of products of elements of the first two operands."""

EMBEDDED_CALLERS = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.REDUCE_SCATTER, Opcode.MAP),
        *(Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SCAN, Opcode.SCATTER, Opcode.TOPK),
        *(Opcode.SELECT_AND_SCATTER, Opcode.SORT, Opcode.FUSION, Opcode.CUSTOM_CALL),
    )
)
"""Opcodes that apply the computations they call to elements, or own them."""

ELEMENTWISE_UNARY = frozenset(
    (
        *(Opcode.ABS, Opcode.ACOS, Opcode.ACOSH, Opcode.ASIN, Opcode.ASINH, Opcode.ATANH),
        *(Opcode.CBRT, Opcode.CEIL, Opcode.COPY, Opcode.COSH, Opcode.COSINE, Opcode.ERF),
        *(Opcode.COUNT_LEADING_ZEROS, Opcode.EXPONENTIAL, Opcode.EXPONENTIAL_MINUS_ONE),
        *(Opcode.FLOOR, Opcode.IMAG, Opcode.IS_FINITE, Opcode.LOG, Opcode.LOG_PLUS_ONE),
        *(Opcode.LOGISTIC, Opcode.NEGATE, Opcode.NOT, Opcode.POPCNT, Opcode.REAL),
        *(Opcode.ROUND_NEAREST_AFZ, Opcode.ROUND_NEAREST_EVEN, Opcode.RSQRT, Opcode.SIGN),
        *(Opcode.SINE, Opcode.SINH, Opcode.SQRT, Opcode.TAN, Opcode.TANH, Opcode.CONVERT),
        *(Opcode.BITCAST_CONVERT, Opcode.REDUCE_PRECISION),
    )
)

ELEMENTWISE_BINARY = frozenset(
    (
        *(Opcode.ADD, Opcode.AND, Opcode.ATAN2, Opcode.COMPARE, Opcode.COMPLEX, Opcode.DIVIDE),
        *(Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.MULHI, Opcode.MULTIPLY, Opcode.OR),
        *(Opcode.POWER, Opcode.REMAINDER, Opcode.SHIFT_LEFT, Opcode.SHIFT_RIGHT_ARITHMETIC),
        *(Opcode.SHIFT_RIGHT_LOGICAL, Opcode.STOCHASTIC_CONVERT, Opcode.SUBTRACT, Opcode.XOR),
    )
)
