"""The resources of XLA's latency-hiding scheduler, straight from its description: slow, to compare
with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hloopt.analysis.gpu_async import is_gpu_copy, is_slice_copy, is_slice_copy_on_device
from hloopt.ir import Computation, Instruction
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.scheduling.config import SchedulerConfig

KINDS = (
    *("all-to-all", "all-gather", "all-reduce", "collective-permute", "copy", "reduce-scatter"),
    *("collective-broadcast", "ragged-all-to-all"),
)
_SYNCHRONOUS = {*KINDS} - {"copy"}
_UNLIMITED = 1 << 62
Use = tuple[str, str]
"""A resource, and whether an instruction occupies or releases it, or neither."""


def form(instruction: Instruction) -> tuple[str, str]:
    """The canonical form: the step of an operation, and the operation."""
    opcode = str(instruction.opcode.value)
    if opcode in ("async-start", "async-done"):
        start = instruction if opcode == "async-start" else instruction.operands[0]
        return opcode, str(start.called[0].root.opcode.value)
    for step in ("-start", "-done"):
        if opcode.endswith(step) and opcode.removesuffix(step) in KINDS:
            return f"async{step}", opcode.removesuffix(step)
    return opcode, opcode


class PlainResources:
    """Resources by name, and how instructions use them."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.is_gpu = config.preset == "xla-gpu"
        self.top_down = config.top_down_scheduling

    def limit(self, resource: str) -> int:
        options = {
            "recv-host": "send_recv_host",
            "send-host": "send_recv_host",
            "send-recv": "send_recv",
        }
        match resource:
            case "collectives":
                return self.config.parallel_collective_overlap_limit
            case "computes":
                return self.config.parallel_async_compute_limit
            case "send-0" | "send-1" | "recv-0" | "recv-1" | "p2p":
                return 4
            case "memcpy":
                return (1 << 31) - 1
        option = options.get(resource, resource.replace("-", "_"))
        limit: int = getattr(self.config, f"{option}_overlap_limit")
        return limit

    # -- starts and dones -----------------------------------------------------------------------

    def is_start(self, instruction: Instruction) -> bool:
        return self._is_step(instruction, "async-start", ("send", "recv"))

    def is_done(self, instruction: Instruction) -> bool:
        return self._is_step(instruction, "async-done", ("send-done", "recv-done"))

    def _is_step(self, instruction: Instruction, step: str, transfers: tuple[str, str]) -> bool:
        outer, inner = form(instruction)
        if outer in transfers:
            return bool(self.config.schedule_send_recvs) or self.is_gpu
        if outer != step:
            return False
        if inner in KINDS:
            return not (self.is_gpu and self._is_sync(instruction))
        start = instruction if step == "async-start" else instruction.operands[0]
        is_away = start.called[0].execution_thread != instruction.parent.execution_thread
        if is_away or not self.is_gpu:
            return is_away
        is_other_work = not self.config.separate_memcpy_stream and is_slice_copy_on_device(start)
        return is_gpu_copy(start) and not is_other_work

    @staticmethod
    def _is_sync(instruction: Instruction) -> bool:
        start = instruction.operands[0] if "done" in instruction.opcode.value else instruction
        return '"is_sync":true' in start.attributes.get("backend_config", "")

    # -- uses -----------------------------------------------------------------------------------

    def uses(self, instruction: Instruction) -> list[Use]:
        if instruction.opcode.value == "while":
            found = [
                use for inner in instruction.called[0].instructions for use in self.uses(inner)
            ]
            return list(dict.fromkeys(found))
        outer, inner = form(instruction)
        at_start, at_done = ("occupy", "release") if self.top_down else ("release", "occupy")
        if outer in ("async-start", "send", "recv"):
            stream = self._stream(instruction, instruction, inner)
            return [(stream, at_start)] if stream else []
        if outer in ("async-done", "send-done", "recv-done"):
            stream = self._stream(instruction, instruction.operands[0], inner)
            return [(stream, at_done)] if stream else []
        if outer == "after-all" and not self.is_gpu:
            return [("send-host", "none")]
        if self.config.track_sync_op_resource_usage and outer in KINDS and not self.is_gpu:
            return [(inner, "occupy"), (inner, "release")]
        return []

    def _stream(self, step: Instruction, start: Instruction, inner: str) -> str | None:
        transfer = inner.removesuffix("-done")
        if self.is_gpu:
            is_separate = self.config.separate_memcpy_stream
            if is_separate and start.opcode == "async-start" and is_slice_copy(start):
                return "memcpy"
            if frontend_attribute(start, "_xla_gpu_collective_stream") == "p2p":
                return "p2p"
            if transfer in ("send", "recv"):
                is_second = frontend_attribute(start, "_xla_send_recv_pipeline") == "1"
                return f"{transfer}-{int(is_second)}"
            is_annotated = frontend_attribute(step, "_xla_stream_annotation") == "collective"
            return "collectives" if inner in _SYNCHRONOUS or is_annotated else "computes"
        if transfer in ("send", "recv"):
            if "is_host_transfer" not in start.attributes:
                return "send-recv"
            is_send = transfer == "send" or self.config.force_send_recv_to_use_same_resource
            return "send-host" if is_send else "recv-host"
        return inner if inner in KINDS else None

    def net_uses(self, instruction: Instruction) -> list[Use]:
        uses = self.uses(instruction)
        if instruction.opcode.value != "while":
            return uses
        return [
            (resource, usage)
            for resource, usage in uses
            if not {(resource, "occupy"), (resource, "release")} <= {*uses}
        ]

    # -- needs at once --------------------------------------------------------------------------

    def needs(self, instruction: Instruction) -> Counter[str]:
        opcode, inner = instruction.opcode, form(instruction)[1]
        if not instruction.called or opcode in ("async-start", "async-done"):
            own = Counter(r for r, usage in self.uses(instruction) if usage == "occupy")
            if opcode == "async-start" and inner not in _SYNCHRONOUS:
                own |= self.most(instruction.called[0])
            return own
        found: Counter[str] = Counter()
        for computation in instruction.called:
            found |= self.most(computation)
        return found

    def most(self, computation: Computation) -> Counter[str]:
        """The most that is in use at once in the computation's present order."""
        most: Counter[str] = Counter()
        running: Counter[str] = Counter()
        for instruction in reversed(list(computation.instructions)):
            for resource, _ in self.uses(instruction) if instruction.opcode != "while" else ():
                running[resource] += self.is_done(instruction) - self.is_start(instruction)
            inside = self.needs(instruction) if instruction.called else Counter()
            for resource in {*running, *inside}:
                most[resource] = max(most[resource], running[resource] + inside[resource])
        most = +most
        return Counter(dict.fromkeys(most, 1)) if computation.is_fusion else most


class InUse:
    """The units left of each resource while one computation is scheduled."""

    def __init__(self, plain: PlainResources, nodes: Sequence[Instruction]) -> None:
        self._uses = [plain.uses(node) for node in nodes]
        self._net = [plain.net_uses(node) for node in nodes]
        self._needs = [plain.needs(node) for node in nodes]
        names = {r for uses in (*self._uses, *self._net) for r, _ in uses}
        names |= {r for needs in self._needs for r in needs}
        self.left = {name: plain.limit(name) for name in names}
        self.waiting: Counter[str] = Counter()
        self.in_flight: list[tuple[str, Instruction]] = []
        self._plain = plain
        self._nodes = nodes

    def uses(self, node: int) -> list[Use]:
        return self._uses[node]

    def resources(self, node: int, usage: str) -> Iterator[str]:
        return (resource for resource, use in self._uses[node] if use == usage)

    def needs(self, node: int) -> Counter[str]:
        return self._needs[node]

    def fits(self, needs: Counter[str]) -> bool:
        return all(count <= self.left[resource] for resource, count in needs.items())

    def is_constrained(self, node: int) -> bool:
        return any(not self.left[r] and self.waiting[r] > 0 for r, _ in self._uses[node])

    def take(self, node: int) -> None:
        for resource, usage in self._net[node]:
            if usage == "occupy":
                self.left[resource] -= 1
                self.waiting[resource] -= 1
            elif usage == "release":
                self.left[resource] += 1

    def note_in_flight(self, node: int) -> None:
        instruction = self._nodes[node]
        is_pair = self._plain.is_done(instruction) and self._plain.is_start(instruction.operands[0])
        for resource in self.resources(node, "occupy"):
            holder = instruction.operands[0] if is_pair else instruction
            if (resource, holder) not in self.in_flight:
                self.in_flight.append((resource, holder))
        for resource in self.resources(node, "release"):
            if (resource, instruction) in self.in_flight:
                self.in_flight.remove((resource, instruction))
