"""One measurement in a process of its own: nothing is remembered from another one.

    worker.py text print|verify FILE SMALL_FILE RUNS
    worker.py parse FILE SMALL_FILE RUNS
    worker.py pass NAME FILE SMALL_FILE RUNS
    worker.py memory ours|xla FILE
    worker.py scale FILE FOLDER FACTOR…
    worker.py flatten FILE FOLDER
    worker.py forms FILE FOLDER

`SMALL_FILE` is read first, untimed, so that imports and regular expressions are ready. The last
line of stdout is the result as JSON; times are in seconds, memory in bytes. Imports stand where
they are used: what one measurement does not need must not weigh on it.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inputs import PIPELINE

if TYPE_CHECKING:
    from hloopt.ir.module import Module


def main() -> None:
    """Measure what the command line names."""
    kind, *arguments = sys.argv[1:]
    print(json.dumps(_KINDS[kind](*arguments)))


def read_text(path: str) -> str:
    """The text of a file, unpacked where it ends in .gz."""
    data = Path(path).read_bytes()
    if path.endswith(".gz"):
        import gzip

        data = gzip.decompress(data)
    return data.decode("utf-8")


def timed(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds `action` takes without garbage collection; its result is freed afterwards."""
    gc.collect()
    gc.disable()
    started = clock()
    result = action()
    seconds = clock() - started
    del result
    gc.enable()
    return seconds


# -- load and print -------------------------------------------------------------------------


def measure_text(task: str, path: str, small: str, runs: str) -> dict[str, Any]:
    """Ours and XLA's in turn on one file; `cold` is our first run."""
    ours = {"print": load_print, "verify": load_verify_print}[task]
    xla = xla_load_print()
    text, small_text = read_text(path), read_text(small)
    for warm_up in (ours, load_print_each, *([xla] if xla else [])):
        warm_up(small_text)
    cold = timed(lambda: ours(text))
    times: dict[str, list[float]] = {"ours": [], "each": [], "xla": []}
    for _ in range(int(runs)):
        if xla:
            times["xla"].append(timed(lambda: xla(text)))
        times["ours"].append(timed(lambda: ours(text)))
        if task == "print":
            times["each"].append(timed(lambda: load_print_each(text)))
    count = load_print(text)[0].instruction_count()
    return {**times, "cold": [cold], "instructions": count, "characters": len(text)}


def load_print(text: str) -> tuple[Module, str]:
    """Load and print, as a user does."""
    from hloopt.text import parse_module, print_module

    module = parse_module(text)
    return module, print_module(module)


def load_print_each(text: str) -> tuple[Module, str]:
    """Load, and print instruction by instruction: no longer passage is echoed as a whole."""
    from hloopt.text import parse_module, print_module

    module = parse_module(text)
    _forget_source(module)
    return module, print_module(module)


def load_verify_print(text: str) -> tuple[Module, str]:
    """As `load_print`, with every attribute parsed and every rule of the verifier checked."""
    from hloopt.text import parse_module, print_module
    from hloopt.verifier import verify_module

    module = parse_module(text)
    errors = verify_module(module)
    if errors:
        raise SystemExit(f"a benchmark module does not verify: {errors[0]}")
    return module, print_module(module)


def _forget_source(module: Module) -> None:
    module.is_pristine = False
    for computation in module.computations.values():
        computation.is_pristine = False


def xla_load_print() -> Callable[[str], object] | None:
    """XLA's parser and printer, constants in full; None where jaxlib is not installed."""
    hlo = _jaxlib()
    if hlo is None:
        return None
    options = hlo.HloPrintOptions()
    options.print_large_constants = True

    def run(text: str) -> object:
        module = hlo.hlo_module_from_text(text)
        return module, module.to_string(options)

    return run


def measure_parsing(path: str, small: str, runs: str) -> dict[str, Any]:
    """Ours and XLA's in turn on one file, in CPU seconds, as those of passes."""
    from hloopt.text import parse_module

    text, small_text = read_text(path), read_text(small)
    hlo = _jaxlib()
    times: dict[str, list[float]] = {"ours": [], "xla": []}
    for whose, read in (("ours", parse_module), ("xla", hlo and hlo.hlo_module_from_text)):
        if read:
            read(small_text)
            times[whose] = [timed(partial(read, text), time.process_time) for _ in range(int(runs))]
    return times


def _jaxlib() -> Any:
    """The part of jaxlib that reads and prints HLO; None where it is not installed."""
    try:
        return import_module("jaxlib._hlo")
    except ImportError:
        return None


# -- passes ---------------------------------------------------------------------------------


def measure_pass(name: str, path: str, small: str, runs: str) -> dict[str, Any]:
    """A pass, or the pipeline, on a freshly loaded module each time, and how long loading took.

    In CPU seconds: these are compared with each other and with a fixed time, never with a run
    that takes turns with them, so what else the machine does must not count.
    """
    from hloopt.text import parse_module

    run = _pipeline if name == PIPELINE else _single_pass(name)
    run(parse_module(read_text(small)))
    text = read_text(path)
    seconds, parsing = [], []
    for _ in range(int(runs)):
        started = time.process_time()
        module = parse_module(text)
        parsing.append(time.process_time() - started)
        before = module.instruction_count()
        seconds.append(timed(partial(run, module), time.process_time))
        after = module.instruction_count()
        del module
    return {"seconds": seconds, "parse": parsing, "instructions": before, "after": after}


def _single_pass(name: str) -> Callable[[Module], object]:
    from hloopt.pass_framework.base import PassContext
    from hloopt.pass_framework.registry import create_pass

    return lambda module: create_pass(name).run(module, PassContext(name, wants_remarks=False))


def _pipeline(module: Module) -> object:
    """As `hloopt opt -p` runs it, verification included."""
    from hloopt.pass_framework.library import find_pipeline
    from hloopt.pass_framework.runner import PipelineRunner

    return PipelineRunner().run(find_pipeline(PIPELINE), module)


# -- memory ---------------------------------------------------------------------------------


def measure_memory(whose: str, path: str) -> dict[str, Any]:
    """The most memory this process ever held, reading one file included; 0 without jaxlib."""
    import resource

    action = load_verify_print if whose == "ours" else xla_load_print()
    if action is None:
        return {"peak": 0}
    result = action(read_text(path))
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    del result
    return {"peak": peak}


# -- larger modules -------------------------------------------------------------------------


def write_scaled(path: str, folder: str, *factors: str) -> dict[str, Any]:
    """Write modules that call the entry of `path` 1, 2, 4… times, each time a copy of its own."""
    from hloopt.text import parse_module, print_module

    text = read_text(path)
    written = {}
    for factor in factors:
        module = parse_module(text)
        repeat_entry(module, int(factor))
        target = Path(folder) / f"{factor}.hlo"
        target.write_text(print_module(module), encoding="utf-8")
        written[factor] = str(target)
    return written


def write_flat(path: str, folder: str) -> dict[str, Any]:
    """Write a module after flatten-call-graph, as copy insertion requires it."""
    from hloopt.text import parse_module, print_module

    module = parse_module(read_text(path))
    _single_pass("flatten-call-graph")(module)
    target = Path(folder) / Path(path).name.removesuffix(".gz")
    target.write_text(print_module(module), encoding="utf-8")
    return {"path": str(target)}


def write_forms(path: str, folder: str) -> dict[str, Any]:
    """Write a module in each form of `forms`; their paths by form."""
    from forms import FORMS
    from hloopt.text import parse_module

    text = read_text(path)
    written = {}
    for number, (form, printed) in enumerate(FORMS.items()):
        target = Path(folder) / f"form{number}" / Path(path).name.removesuffix(".gz")
        target.parent.mkdir(exist_ok=True)
        target.write_text(printed(parse_module(text)), encoding="utf-8")
        written[form] = str(target)
    return written


def repeat_entry(module: Module, times: int) -> None:
    """Give `module` an entry that calls `times` copies of its program, each with its own inputs.

    O(instructions x times).
    """
    from hloopt.ir.clone import clone_computation
    from hloopt.ir.opcode import Opcode
    from hloopt.ir.ordering import computation_post_order
    from hloopt.ir.shapes.shape import tuple_shape

    program, originals = module.entry, list(computation_post_order(module))
    copies = [program]
    for _ in range(times - 1):
        clones = {}
        for original in originals:
            clones[original], instructions = clone_computation(original)
            for instruction in instructions.values():
                if instruction.called:
                    instruction.set_called(tuple(clones[c] for c in instruction.called))
        copies.append(clones[program])
    entry = module.add_computation("repeat")
    calls = []
    shapes = [parameter.shape for parameter in program.parameters]
    for number, copy in enumerate(copies):
        inputs = [
            entry.add(Opcode.PARAMETER, shape, payload=str(number * len(shapes) + n))
            for n, shape in enumerate(shapes)
        ]
        calls.append(entry.add(Opcode.CALL, copy.root.shape, inputs, called=(copy,)))
    result = tuple_shape([call.shape for call in calls])
    entry.set_root(entry.add(Opcode.TUPLE, result, calls))
    module.entry = entry
    program.changed()  # its text says ENTRY
    for fact_of_the_old_entry in (
        *("entry_computation_layout", "input_output_alias", "buffer_donor"),
        *("allow_spmd_sharding_propagation_to_parameters", "frontend_attributes"),
        "allow_spmd_sharding_propagation_to_output",
    ):
        module.set_attribute(fact_of_the_old_entry, None)


_KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "text": measure_text,
    "parse": measure_parsing,
    "pass": measure_pass,
    "memory": measure_memory,
    "scale": write_scaled,
    "flatten": write_flat,
    "forms": write_forms,
}

if __name__ == "__main__":
    main()
