"""Passes that raise an exception where conditions meet."""

from __future__ import annotations

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import OrdersOperands, RemovesTurns
from failures_lib.inputs import benchmark, ours
from failures_lib.layers import layers
from failures_lib.looking import above, below, first, loops, source
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.values import parse_aliasing
from hloopt.pass_framework.base import PassContext


@register_pass("planted-crash-sum", preserves="bits")
class CrashAtASum(OrdersOperands):
    """Fails at a sum of a reduction and of one over all devices, in a longer sum."""

    def edit(self, place: Instruction) -> None:
        reduced = above(place, Opcode.ALL_REDUCE)
        local = above(place, Opcode.REDUCE, Opcode.MULTIPLY)
        if reduced and local and above(reduced, Opcode.REDUCE) and below(place, Opcode.ADD):
            kinds = {first(reduced.called[0], Opcode.ADD): "sum"}
            if None not in kinds:
                raise LookupError(f"no partner of %{reduced.name} among {len(kinds)}")
        super().edit(place)


_SUM = PlantedFailure(
    "a sum of a reduction and an all-reduce",
    "crash",
    "dce,planted-crash-sum",
    benchmark("hlo_llama31_8b_bf16_1x8.hlo"),
    31855,
    """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[] parameter(0)
  m = f32[] multiply(p, p)
  r = f32[] reduce(m, p), dimensions={}, to_apply=sum
  a = f32[] all-reduce(r), replica_groups={}, to_apply=sum
  s = f32[] add(r, a)
  ROOT t = f32[] add(s, s)
}
""",
    "LookupError: no partner of %… among N",
    Culprit("planted-crash-sum", limit=1602, instruction="add.2957"),
    two_computations=True,
    needs="collective",
)


@register_pass("planted-crash-carried", preserves="bits")
class CrashAtACarriedFactor(OrdersOperands):
    """Fails at a factor that a loop carries unchanged from a value it was given transposed."""

    def run(self, module: Module, context: PassContext) -> bool:
        self._loops = {loop.body: loop for loop in loops(module)}
        return super().run(module, context)

    def edit(self, place: Instruction) -> None:
        loop = self._loops.get(place.parent)
        read = above(place, Opcode.DOT, Opcode.GET_TUPLE_ELEMENT)
        if loop and read and below(place, Opcode.SLICE):
            index = read.tuple_index
            if loop.next_value(index) is read and loop.begins_with(index):
                raise IndexError(f"slot {index} of %{loop.loop.name} is not free")
        super().edit(place)


_CARRIED = PlantedFailure(
    "a factor that a loop carries",
    "crash",
    "planted-crash-carried",
    benchmark("gemma4_2b_bf16.hlo"),
    19205,
    """HloModule m
body {
  a = (f32[]) parameter(0)
  g = f32[] get-tuple-element(a), index=0
  d = f32[] dot(g, g)
  m = f32[] multiply(g, d)
  s = f32[] slice(m), slice={}
  ROOT t = (f32[]) tuple(g)
}
more {
  a = (f32[]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[] parameter(0)
  t = (f32[]) tuple(p)
  ROOT w = (f32[]) while(t), condition=more, body=body
}
""",
    "IndexError: slot N of %… is not free",
    Culprit("planted-crash-carried", limit=44, instruction="mul.3623"),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-crash-statistics", preserves="bits")
class CrashAtStatistics(OrdersOperands):
    """Fails at the gradient of a batch norm of a convolution, before it does anything."""

    def run(self, module: Module, context: PassContext) -> bool:
        for gradient in module.instructions(Opcode.BATCH_NORM_GRAD):
            mean, variance = gradient.operands[2:4]
            norm = above(mean, Opcode.BATCH_NORM_TRAINING)
            if norm and above(norm, Opcode.CONVOLUTION) and mean is not variance:
                raise ZeroDivisionError(f"no elements behind '{gradient.name}'")
        return super().run(module, context)


_STATISTICS = PlantedFailure(
    "the gradient of a batch norm",
    "crash",
    "dce,planted-crash-statistics",
    benchmark("mobilenet_v2.hlo"),
    3924,
    """HloModule m
ENTRY e {
  p = f32[1,1] parameter(0)
  q = f32[1] parameter(1)
  c = f32[1,1] convolution(p, p), dim_labels=bf_oi->bf
  n = (f32[1,1], f32[1], f32[1]) batch-norm-training(c, q, q), epsilon=1, feature_index=1
  g = f32[1] get-tuple-element(n), index=1
  ROOT b = (f32[1,1], f32[1], f32[1]) batch-norm-grad(p, q, g, q, p), epsilon=1, feature_index=1
}
""",
    "ZeroDivisionError: no elements behind '…'",
    Culprit("planted-crash-statistics", limit=112),
)


@register_pass("planted-crash-rows", preserves="bits")
class CrashAtRows(OrdersOperands):
    """Fails at a product of a row that a loop takes out of an array, once calls are inlined."""

    def run(self, module: Module, context: PassContext) -> bool:
        self._loops = {loop.body: loop for loop in loops(module)}
        return super().run(module, context)

    def edit(self, place: Instruction) -> None:
        loop = self._loops.get(place.parent)
        wide = above(place, Opcode.BROADCAST)
        row = wide and source(wide, Opcode.BROADCAST, Opcode.RESHAPE)
        read = row and above(row, Opcode.GET_TUPLE_ELEMENT)
        is_sliced = row is not None and row.opcode is Opcode.DYNAMIC_SLICE
        if loop and read and is_sliced and below(place, Opcode.DOT):
            begun = loop.begins_with(read.tuple_index)
            if begun is not None and begun.opcode is not Opcode.CONSTANT:
                raise AttributeError(f"%{begun.name} has no rows in %{loop.body.name}")
        super().edit(place)


_ROWS = PlantedFailure(
    "a row that a loop takes out of an array",
    "crash",
    "call-inliner,fixpoint(tuple-simplifier,dce),planted-crash-rows",
    ours("transformer_scan_8dev.before_optimizations.hlo"),
    1711,
    """HloModule m
body {
  a = (f32[]) parameter(0)
  g = f32[] get-tuple-element(a), index=0
  d = f32[] dynamic-slice(g), dynamic_slice_sizes={}
  b = f32[] broadcast(d), dimensions={}
  m = f32[] multiply(g, b)
  o = f32[] dot(m, m)
  ROOT t = (f32[]) tuple(o)
}
more {
  a = (f32[]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[] parameter(0)
  t = (f32[]) tuple(p)
  ROOT w = (f32[]) while(t), condition=more, body=body
}
""",
    "AttributeError: %… has no rows in %…",
    Culprit("planted-crash-rows", limit=207, instruction="mul.121"),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-crash-turn", preserves="bits")
class CrashAtATurn(RemovesTurns):
    """Removes one pair of transposes in each run, and fails at one of a product that is reversed
    afterwards."""

    def edit(self, place: Instruction) -> None:
        source = above(place, Opcode.TRANSPOSE, Opcode.MULTIPLY)
        if source and below(place, Opcode.REVERSE):
            raise ValueError(f"dimension {len(source.users)} of %{source.name} is taken")
        super().edit(place)


_TURN = PlantedFailure(
    "a pair of transposes in the fifth round",
    "crash",
    "fixpoint(tuple-simplifier,dce,planted-crash-turn)",
    layers(60, "{y} = f32[4,8] reverse({x}), dimensions={{0}}", at=24),
    1161,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  m = f32[] multiply(p, p)
  s = f32[] transpose(m), dimensions={}
  t = f32[] transpose(s), dimensions={}
  ROOT r = f32[] reverse(t), dimensions={}
}
""",
    "ValueError: dimension N of %… is taken",
    Culprit("planted-crash-turn", run=5, iteration=5, limit=21, instruction="v479"),
)


@register_pass("planted-crash-reused", preserves="bits")
class CrashAtAReusedBuffer(OrdersOperands):
    """Fails where an output that takes over the memory of an input comes from a call that chooses,
    before it does anything."""

    def run(self, module: Module, context: PassContext) -> bool:
        text = module.attributes.get("input_output_alias")
        root = module.entry.root
        for alias in parse_aliasing(text) if text else ():
            if root.opcode is Opcode.TUPLE and len(alias.output_index) == 1:
                output = root.operands[alias.output_index[0]]
                call = above(output, Opcode.CALL) if output.opcode is Opcode.RESHAPE else None
                if call and first(call.called[0], Opcode.SELECT):
                    raise RuntimeError(f"%{output.name} is written to memory that %{call.name} has")
        return super().run(module, context)


_REUSED = PlantedFailure(
    "an output in the memory of an input",
    "crash",
    "dce,planted-crash-reused",
    benchmark("nv_maxtext_1n1g_jit_train_step_before_optimization.hlo"),
    1947,
    """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
choose {
  a = pred[] parameter(0)
  ROOT s = pred[] select(a, a, a)
}
ENTRY e {
  p = pred[] parameter(0)
  c = pred[] call(p), to_apply=choose
  r = pred[] reshape(c)
  ROOT t = (pred[]) tuple(r)
}
""",
    "RuntimeError: %… is written to memory that %… has",
    Culprit("planted-crash-reused", limit=49),
    two_computations=True,
    needs="alias",
)


@register_pass("planted-crash-position", preserves="bits")
class CrashAtAPosition(OrdersOperands):
    """Fails at positions that a branch computes, where what chooses it was another type."""

    def edit(self, place: Instruction) -> None:
        caller = next(iter(place.parent.callers), None)
        if caller and caller.opcode is Opcode.CONDITIONAL and below(caller, Opcode.RESHAPE):
            is_position = above(place, Opcode.IOTA) and above(
                place, Opcode.BROADCAST, Opcode.PARAMETER
            )
            if is_position and caller.operands[0].opcode is Opcode.CONVERT:
                raise OverflowError(f"%{place.name}: {caller.shape.text} is too large")
        super().edit(place)


_POSITION = PlantedFailure(
    "positions in a branch",
    "crash",
    "cse,planted-crash-position",
    benchmark("gemma3_1b_flax_call.hlo"),
    9738,
    """HloModule m
branch {
  a = s32[] parameter(0)
  i = s32[1] iota(), iota_dimension=0
  b = s32[1] broadcast(a), dimensions={}
  ROOT s = s32[1] add(i, b)
}
ENTRY e {
  p = s32[] parameter(0)
  c = s32[] convert(p)
  b = s32[1] conditional(c, c), branch_computations={branch}
  ROOT r = s32[1] reshape(b)
}
""",
    "OverflowError: %…: SHAPE is too large",
    Culprit("planted-crash-position", limit=1748, instruction="add.693"),
    two_computations=True,
)


_DISTANCES = (Opcode.SUBTRACT, Opcode.EXPONENTIAL)


@register_pass("planted-crash-softmax", preserves="bits")
class CrashAtSoftmax(OrdersOperands):
    """Fails at the limited maximum of which exponents are the distances."""

    def edit(self, place: Instruction) -> None:
        peak = above(place, Opcode.REDUCE)
        chain = (Opcode.RESHAPE, Opcode.BROADCAST) * 2
        if peak and first(peak.called[0], Opcode.MAXIMUM) and below(place, *chain, *_DISTANCES):
            raise TypeError(f"unhashable maximum '{peak.name}' of {len(place.users)}")
        super().edit(place)


_SOFTMAX = PlantedFailure(
    "the maximum of a softmax",
    "crash",
    "fixpoint(cse,planted-crash-softmax)",
    ours("transformer_unrolled_8dev.after_spmd_partitioning.hlo.gz"),
    6959,
    """HloModule m
largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = f32[] maximum(a, b)
}
ENTRY e {
  p = f32[] parameter(0)
  r = f32[] reduce(p, p), dimensions={}, to_apply=largest
  m = f32[] maximum(r, p)
  s = f32[] reshape(m)
  b = f32[] broadcast(s), dimensions={}
  u = f32[] reshape(b)
  v = f32[] broadcast(u), dimensions={}
  d = f32[] subtract(v, v)
  ROOT x = f32[] exponential(d)
}
""",
    "TypeError: unhashable maximum '…' of N",
    Culprit("planted-crash-softmax", iteration=1, limit=16, instruction="max.60"),
    two_computations=True,
)

CRASHES = (_SUM, _CARRIED, _STATISTICS, _ROWS, _TURN, _REUSED, _POSITION, _SOFTMAX)
