"""The pictures of the gallery, in order: commands, and sentences for the page."""

from __future__ import annotations

from dataclasses import dataclass

FSDP = "testdata/fsdp_layers_8dev.after_spmd_partitioning.hlo"
TRANSFORMER = "testdata/transformer_scan_8dev.after_optimizations.hlo.gz"

SETUP = (
    f"hloopt opt {FSDP} -p schedule-gpu -o build/before.hlo",
    f"hloopt opt {FSDP} -p pipeline-collectives -o build/prefetch.hlo",
    "hloopt opt build/prefetch.hlo -p schedule-gpu -o build/after.hlo",
    f"sed 's/add(%get-tuple-element.12,/add(%get-tuple-element.2,/' {FSDP} > build/edited.hlo",
)
"""Commands that make what commands of pictures read, once there is a folder build/."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of a command: what it writes on a terminal, or the page that it makes."""

    name: str
    """The name of the file, without its suffix."""
    heading: str
    text: str
    """The contents of the picture in one or two sentences."""
    command: str
    exit_code: int = 0
    columns: int = 90
    has_times: bool = False
    """Whether the picture shows how long passes took: no two runs write the same."""
    page: str | None = None
    """The file of a page: its picture is made by a browser, light and dark."""
    height: int = 0
    """The height of a page's window in pixels, down to a line that is shown as a whole."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files in docs/pictures/."""
        if self.page is None:
            return (f"{self.name}.svg",)
        return (f"{self.name}.light.png", f"{self.name}.dark.png")


PICTURES = (
    Picture(
        "schedule",
        "What the step waits for",
        "A loop of 16 layers in the order of XLA:GPU's latency-hiding scheduler. In each trip the "
        "main stream idles (`░`) while the all-gather of the weights is in flight (`━`): 2.1 ms of "
        "5.6 ms are exposed, and the last lines say why no work could run under it.",
        "hloopt schedule build/before.hlo --target h100_sxm",
    ),
    Picture(
        "opt",
        "What passes did to the module",
        "The collective pipeliner moves the all-gather one trip earlier; the other passes of the "
        "pipeline clean up. `--validate end` ran the module before and after on eight simulated "
        "devices and compared the results. Below it: what changed, by opcode, by computation, by "
        "instruction.",
        f"hloopt opt {FSDP} -p pipeline-collectives --validate end --shrink --no-memory "
        "-o build/prefetch.hlo",
        has_times=True,
    ),
    Picture(
        "overlap",
        "What moving the collective buys",
        "The same loop before and after, each scheduled by the rules of the latency-hiding "
        "scheduler: exposed time falls from 2.1 ms to 128 us, the one all-gather before the loop. "
        "The price is the 32 MiB by which the state of the loop grows.",
        f"hloopt analyze overlap {FSDP} build/prefetch.hlo --target h100_sxm",
    ),
    Picture(
        "explain",
        "Why the scheduler puts it there",
        "What was ready when the latency-hiding scheduler, which works bottom up, picked this "
        "`all-gather-start`, and which of XLA's rules decided.",
        "hloopt schedule build/after.hlo --target h100_sxm --explain %all-gather-start",
    ),
    Picture(
        "schedule-page",
        "The timeline as a page",
        "The pipelined loop, all 15 trips: all-gathers (green) run under the `dot` of the trip "
        "before, only the first one is exposed (red). Zoom, select, filter by `op_name`; the page "
        "is one file without a server.",
        "hloopt schedule build/after.hlo --target h100_sxm --html build/schedule.html",
        page="build/schedule.html",
        height=860,
    ),
    Picture(
        "optimize-page",
        "What decisions make of the step",
        "The loop in XLA:GPU's order, and what `hloopt optimize` makes of it where the "
        "device has 96 MiB more: each decision with what it bought, and both timelines.",
        "hloopt optimize build/before.hlo --target h100_sxm --limit 288MiB --iterations 30 "
        "-o build/best.hlo --html build/best.html",
        page="build/best.html",
        height=1360,
    ),
    Picture(
        "diff",
        "What differs between two dumps",
        "Instructions are matched by what they compute, not by their names. Then sizes of XLA's "
        "buffer assignment, the buffers that entered or left the peak, and the schedules: 40.5% "
        "less time for 36 MiB more.",
        "hloopt diff build/before.hlo build/after.hlo --target h100_sxm --top 5",
        exit_code=1,
    ),
    Picture(
        "view",
        "A module as one page",
        "The training step by scopes: a box with a thick frame opens. What selects an instruction "
        "in the graph, the text, the timeline or the memory selects it in all of them.",
        f"hloopt view {TRANSFORMER} --target h100_sxm -o build/view.html",
        page="build/view.html",
        height=800,
    ),
    Picture(
        "memory",
        "What is alive at the memory peak",
        "XLA's buffer assignment of a training step: the figures of its `CompiledMemoryStats`, "
        "memory over the schedule with the peak in the backward loop, and the largest buffers "
        "there, by `op_name`.",
        f"hloopt memory {TRANSFORMER} --target h100_sxm --top 6",
    ),
    Picture(
        "memory-page",
        "Lifetimes and addresses as a page",
        "The same step: above what is alive at each position of the schedule, by scope; below each "
        "buffer at its offset in the heap of temporaries, from definition to last use.",
        f"hloopt memory {TRANSFORMER} --target h100_sxm --html build/memory.html",
        page="build/memory.html",
        height=1086,
    ),
    Picture(
        "cost",
        "What bounds the step",
        "Flops and bytes as XLA's `HloCostAnalysis` counts them, and the least time on an H100: "
        "at these small sizes all of it is bound by memory, most of it in the backward loop.",
        f"hloopt cost {TRANSFORMER} --target h100_sxm --by scope --top 6",
    ),
    Picture(
        "verify",
        "What is wrong with an edited module",
        "A mistake is one message with its place, a code that `hloopt explain` knows, and a guess.",
        "hloopt verify build/edited.hlo",
        exit_code=2,
        columns=106,
    ),
)
