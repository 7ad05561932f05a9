"""Random scheduled programs of all that the latency-hiding scheduler tells apart: kinds of
operations and of transfers, loops, calls, hints, scheduling groups, buffers of several sizes."""

from __future__ import annotations

from random import Random

from hloopt.analysis.latency import CostTable
from hloopt.ir import Module

_ARRAY = "f32[8]"
_STATE = f"(s32[], {_ARRAY})"
_SENT = f"({_ARRAY}, u32[], token[])"
_HEAD = """HloModule m, is_scheduled=true, replica_count=2

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
condition { s = (s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT l = pred[] compare(i, n), direction=LT }
"""
_PAIRS = "source_target_pairs={{0,1},{1,0}}"
_GROUPS = "replica_groups={{0,1}}"
_DONE = {"permute": "collective-permute", "gather": "all-gather", "reduce": "all-reduce"}

_STREAM = '_xla_stream_annotation="collective"'
"""On a call and its end, each by itself: XLA:GPU's stream of collectives."""


def mixed_program(
    seed: int, size: int = 16, *, grouped: bool = False, calls: bool = True, gpu: bool = False
) -> str:
    """A program for two devices. The same seed gives the same text.

    `calls`: with loops, calls and conditionals, whose bodies are such programs, too. `gpu`: with
    what only XLA:GPU tells apart.
    """
    rng = Random(seed)
    entry = _Computation(rng, "e", grouped=grouped, calls=calls, gpu=gpu)
    entry.lines += [f"p{n} = {_ARRAY} parameter({n})" for n in range(3)]
    entry.lines += ["zero = s32[] constant(0)", "q = pred[] constant(true)"]
    entry.values += ["p0", "p1", "p2"]
    if calls:
        entry.callees.append(_body(rng, "b"))
        entry.callees.append(_function(rng, "f"))
    entry.add(size)
    used = entry.values[-4:]
    entry.lines.append(f"ROOT r = ({', '.join([_ARRAY] * len(used))}) tuple({', '.join(used)})")
    return "\n".join([_HEAD, *entry.callees, "ENTRY main {", *entry.lines, "}"])


def random_times(module: Module, seed: int) -> CostTable:
    """Few different costs and latencies, so that some are equal and some are nothing."""
    rng = Random(seed)
    names = [instruction.name for instruction in module.instructions()]
    return CostTable(
        {name: rng.choice((0.0, 1.0, 1.0, 2.0, 4.0)) for name in names},
        {name: rng.choice((1.0, 3.0, 8.0, 8.0)) for name in names},
    )


def _body(rng: Random, prefix: str) -> str:
    lines = _Computation(rng, prefix)
    lines.lines += [
        f"s = {_STATE} parameter(0)",
        "i = s32[] get-tuple-element(s), index=0",
        "one = s32[] constant(1)",
        "next = s32[] add(i, one)",
        f"x = {_ARRAY} get-tuple-element(s), index=1",
    ]
    lines.values.append("x")
    lines.add(6)
    lines.lines.append(f"ROOT t = {_STATE} tuple(next, {lines.values[-1]})")
    return "\n".join([*lines.callees, "body {", *lines.lines, "}"])


def _function(rng: Random, prefix: str) -> str:
    lines = _Computation(rng, prefix)
    lines.lines.append(f"y = {_ARRAY} parameter(0)")
    lines.values.append("y")
    lines.add(4)
    lines.lines.append(f"ROOT z = {_ARRAY} negate({lines.values[-1]})")
    return "\n".join([*lines.callees, "function {", *lines.lines, "}"])


class _Computation:
    """Instructions of a computation, and the arrays among them."""

    def __init__(
        self,
        rng: Random,
        prefix: str,
        *,
        grouped: bool = False,
        calls: bool = False,
        gpu: bool = False,
    ) -> None:
        self.rng = rng
        self.prefix = prefix
        self.grouped = grouped
        self.calls = calls
        self.gpu = gpu
        self.callees: list[str] = []
        self.lines: list[str] = []
        self.values: list[str] = []
        self._open: list[tuple[str, str, list[str]]] = []
        """Operations under way: their kind, the start, the notes on it."""
        self._group = 0
        self._channel = {"e": 0, "b": 1000, "f": 2000}[prefix]

    def add(self, count: int) -> None:
        """Add about so many operations, and end all."""
        for number in range(count):
            name = f"{self.prefix}{number}"
            kind = self.rng.random()
            if self.grouped and kind < 0.15:
                self._together(name)
            elif kind < 0.5:
                self._begin(name, [])
            elif kind < 0.6 and self.calls:
                self._call(name)
            elif kind < 0.65:
                self._synchronous(name)
            else:
                self._work(name, [])
            while self._open and self.rng.random() < 0.4:
                self._end(self._open.pop(self.rng.randrange(len(self._open))))
        while self._open:
            self._end(self._open.pop(0))

    def _line(self, name: str, shape: str, call: str, notes: list[str]) -> None:
        if not any("group" in note for note in notes) and self.rng.random() < 0.1:
            control = self.rng.choice(self.values[-6:])
            call += f", control-predecessors={{{control}}}"
        attributes = f", frontend_attributes={{{','.join(notes)}}}" if notes else ""
        self.lines.append(f"{name} = {shape} {call}{attributes}")

    def _value(self) -> str:
        return self.rng.choice(self.values[-8:])

    def _delay(self, *kinds: str) -> list[str]:
        """A hint, now and then."""
        if self.rng.random() > 0.15:
            return []
        kind = self.rng.choice(kinds)
        notes = [f'scheduler_hint="{kind}"']
        if "delay" in kind:
            notes.append(f'scheduler_delay_priority="{self.rng.randrange(3)}"')
        return notes

    def _work(self, name: str, notes: list[str]) -> None:
        a, b = self._value(), self._value()
        kind = self.rng.choice(("fusion", "fusion", "custom-call", "broadcast", "add", "large"))
        if kind == "fusion":
            how = self.rng.choice(("kLoop", "kOutput", "kInput"))
            parameters = f"x = {_ARRAY} parameter(0) y = {_ARRAY} parameter(1)"
            self.callees.append(f"{name}f {{ {parameters} ROOT z = {_ARRAY} add(x, y) }}")
            self._line(name, _ARRAY, f"fusion({a}, {b}), kind={how}, calls={name}f", notes)
        elif kind == "custom-call":
            notes = notes or self._delay("force_early", "force_delay")
            self._line(name, _ARRAY, f'custom-call({a}), custom_call_target="x"', notes)
        elif kind == "broadcast":
            self._line(f"{name}b", "f32[8,8]", f"broadcast({a}), dimensions={{1}}", notes)
            slices = "slice={[0:1],[0:8]}"
            self._line(f"{name}s", "f32[1,8]", f"slice({name}b), {slices}", notes)
            self._line(name, _ARRAY, f"bitcast({name}s)", notes)
        elif kind == "large":
            size = self.rng.choice((16, 64))
            self._line(f"{name}l", f"f32[{size}]", f'custom-call({a}), custom_call_target="l"', [])
            self._line(name, _ARRAY, f"slice({name}l), slice={{[0:8]}}", notes)
        else:
            self._line(name, _ARRAY, f"add({a}, {b})", notes)
        self.values.append(name)

    def _synchronous(self, name: str) -> None:
        self._line(name, _ARRAY, f"all-reduce({self._value()}), {_GROUPS}, to_apply=sum", [])
        self.values.append(name)

    def _together(self, name: str) -> None:
        """A group around an operation, or in part outside of one."""
        self._group += 1
        notes = [f'_scheduling_group_id="{self._group}"']
        if self.rng.random() < 0.3:
            notes.append('keep_original_sequence_order_in_group="true"')
        self._begin(name, notes)
        others = [] if self.rng.random() < 0.5 else [f"{name}o"]
        for other in others:
            self._begin(other, notes)
        for number in range(self.rng.randrange(3)):
            self._work(f"{name}w{number}", notes)
        for _ in range(1 + len(others)):
            kind, start, _ = self._open.pop()
            self._end((kind, start, notes if self.rng.random() < 0.7 else []))

    def _begin(self, name: str, notes: list[str]) -> None:
        kind = self.rng.choice(
            ("permute", "permute", "gather", "reduce", "copy", "async", "thread", "send", "recv")
        )
        operand = self._value()
        self._channel += 1
        channel = f"channel_id={self._channel}"
        host = self.rng.choice((", is_host_transfer=true", ""))
        delay = notes or self._delay("force_delay_async", "force_delay")
        if self.gpu and not notes and self.rng.random() < 0.5:
            kind, delay = self._begin_on_gpu(name, operand), []
        elif kind == "permute":
            call = f"collective-permute-start({operand}), {_PAIRS}"
            self._line(name, f"({_ARRAY}, {_ARRAY})", call, delay)
        elif kind == "gather":
            call = f"all-gather-start({operand}), {_GROUPS}, dimensions={{0}}"
            self._line(name, f"({_ARRAY}, f32[16])", call, delay)
        elif kind == "reduce":
            self.lines.append(f"{name}c = {_ARRAY} copy({operand})")
            call = f"all-reduce-start({name}c), {_GROUPS}, to_apply=sum"
            self._line(name, _ARRAY, call, delay)
        elif kind == "copy":
            self._line(name, f"({_ARRAY}, {_ARRAY}, u32[])", f"copy-start({operand})", delay)
        elif kind == "async":
            call = f"all-to-all(a), {_GROUPS}, dimensions={{0}}"
            self._wrap(name, operand, call, delay, "")
        elif kind == "thread":
            self._wrap(name, operand, "negate(a)", delay, ', execution_thread="host"')
        else:
            self.lines.append(f"{name}k = token[] after-all()")
            sent = f"{operand}, " if kind == "send" else ""
            kind += host
            call = f"{kind[:4]}({sent}{name}k), {channel}{host}"
            self._line(
                name, _SENT if kind[:4] == "send" else f"({_ARRAY}, u32[], token[])", call, delay
            )
            kind += f", {channel}"
        self._open.append((kind, name, delay))

    def _begin_on_gpu(self, name: str, operand: str) -> str:
        """Begin what has a stream of its own; the kind of its done."""
        kind = self.rng.choice(("slice", "slice", "update", "sync", "p2p", "own", "second"))
        config = 'backend_config={"dynamic_slice_config":{"byte_offset":"0","byte_stride":"0"}}'
        parameters = f"x = {_ARRAY} parameter(0) n = s32[] parameter(1)"
        slices = {
            "slice": f"dynamic-slice(x, n), dynamic_slice_sizes={{8}}, {config}",
            "update": "dynamic-update-slice(x, x, n)",
        }
        if kind in slices:
            self.callees += [
                f"{name}s {{ {parameters} ROOT o = {_ARRAY} {slices[kind]} }}",
                f"{name}a {{ {parameters} "
                f"ROOT f = {_ARRAY} fusion(x, n), kind=kLoop, calls={name}s }}"
                + (', execution_thread="host"' if kind == "update" else ""),
            ]
            self.lines.append(f"{name}n = s32[] constant(0)")
            call = f"async-start({operand}, {name}n), calls={name}a"
            if kind == "update":
                call += ', async_execution_thread="host"'
            self._line(name, f"(({_ARRAY}, s32[]), {_ARRAY})", call, [])
            return "async"
        if kind == "own":
            self._wrap(name, operand, "negate(a)", [_STREAM], ', execution_thread="host"')
            return "own"
        if kind == "second":
            self.lines.append(f"{name}k = token[] after-all()")
            notes = ['_xla_send_recv_pipeline="1"']
            self._line(name, _SENT, f"recv({name}k), channel_id={self._channel}", notes)
            return f"recv, channel_id={self._channel}"
        call = f"collective-permute-start({operand}), {_PAIRS}"
        if kind == "sync":
            call += ', backend_config={"collective_backend_config":{"is_sync":true}}'
        notes = ['_xla_gpu_collective_stream="p2p"'] if kind == "p2p" else []
        self._line(name, f"({_ARRAY}, {_ARRAY})", call, notes)
        return "permute"

    def _wrap(self, name: str, operand: str, call: str, notes: list[str], thread: str) -> None:
        self.callees.append(
            f"{name}a {{ a = {_ARRAY} parameter(0) ROOT o = {_ARRAY} {call} }}{thread}"
        )
        where = thread.replace("execution_thread", "async_execution_thread")
        call = f"async-start({operand}), calls={name}a{where}"
        self._line(name, f"(({_ARRAY}), {_ARRAY})", call, notes)

    def _end(self, operation: tuple[str, str, list[str]]) -> None:
        kind, start, notes = operation
        if any("hint" in note for note in notes):
            notes = self.rng.choice(([], ['scheduler_hint="force_delay_async"']))
        name = f"{start}d"
        opcode, *rest = kind.split(", ")
        if opcode in _DONE:
            shape = "f32[16]" if opcode == "gather" else _ARRAY
            self._line(name, shape, f"{_DONE[opcode]}-done({start})", notes)
            if opcode == "gather":
                self._line(f"{name}g", _ARRAY, f"slice({name}), slice={{[4:12]}}", [])
                name += "g"
        elif opcode == "copy":
            self._line(name, _ARRAY, f"copy-done({start})", notes)
        elif opcode == "own":
            self._line(name, _ARRAY, f"async-done({start})", [*notes, _STREAM])
        elif opcode in ("async", "thread"):
            self._line(name, _ARRAY, f"async-done({start})", notes)
        elif opcode == "send":
            self._line(name, "token[]", ", ".join([f"send-done({start})", *rest]), notes)
            return
        else:
            call = ", ".join([f"recv-done({start})", *rest])
            self._line(name, f"({_ARRAY}, token[])", call, notes)
            self._line(f"{name}v", _ARRAY, f"get-tuple-element({name}), index=0", [])
            name += "v"
        self.values.append(name)

    def _call(self, name: str) -> None:
        kind = self.rng.choice(("while", "while", "call", "conditional"))
        if kind == "call":
            self._line(name, _ARRAY, f"call({self._value()}), to_apply=function", [])
        elif kind == "conditional":
            both = f"{self._value()}, {self._value()}"
            call = f"conditional(q, {both}), true_computation=function, false_computation=function"
            self._line(name, _ARRAY, call, [])
        else:
            self.lines.append(f"{name}z = s32[] copy(zero)")
            self.lines.append(f"{name}v = {_ARRAY} copy({self._value()})")
            self.lines.append(f"{name}i = {_STATE} tuple({name}z, {name}v)")
            call = f"while({name}i), condition=condition, body=body"
            self._line(f"{name}w", _STATE, call, [])
            self._line(name, _ARRAY, f"get-tuple-element({name}w), index=1", [])
        self.values.append(name)
