"""Runs records: parse, run the passes, check what is expected, say what is wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.expect import (  # noqa: F401  # registers
    aliases,
    analyses,
    backend_config,
    layouts,
    loop_plans,
    loops,
    memory_plans,
    names,
    numbers,
    operands,
    rematerialized,
    result,
    schedules,
    structure,
    values,
)
from conformance_lib.expectations import WHEN, mismatches
from conformance_lib.known_differences import with_known_differences
from conformance_lib.memory_space.module_units import MODULE_UNITS
from conformance_lib.memory_space.units import UNITS as MEMORY_SPACE_UNITS
from conformance_lib.options import DEBUG_OPTIONS, SUPPORT_OPTIONS, pass_options
from conformance_lib.pipeliner import PIPELINER
from conformance_lib.records import Record, Step
from conformance_lib.rematerialization import REMATERIALIZATION, rematerialization_options
from conformance_lib.replication import REPLICATION, check_replication
from conformance_lib.scene import Scene
from conformance_lib.scheduling import is_scheduling_record, run_scheduling
from conformance_lib.shape_inference import SHAPE_INFERENCE, run_shape_inference
from conformance_lib.source_names import SourceNames
from conformance_lib.verifier import VERIFIER, check_verdict
from conformance_lib.vocabulary import future  # noqa: F401  # registers
from conformance_lib.vocabulary.check import check_words
from conformance_lib.vocabulary.passes import has_option, is_missing, lacks
from hloopt.diagnostics import HloError, render_error
from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.text import PrintOptions, parse_module, print_module

_COUNTS = ("replica_count", "num_partitions")


"""The functions that answer records about single components, by the pass names of these."""


class Pass(Protocol):
    """Runs on a module and reports whether it changed."""

    def run(self, module: Module, context: PassContext) -> bool: ...


CreatePass = Callable[[str, Mapping[str, object]], Pass]


@dataclass(slots=True)
class Outcome:
    """The outcome of one record."""

    record: Record
    failures: list[str] = field(default_factory=list)
    """One message per expectation that does not hold; empty where the record passed."""
    result: str = ""
    """The module at the end, as text; empty where it was not read."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on a record that passed."""
    difference: str | None = None
    """The reason why something else is expected of hloopt than of XLA; None where it is the
    same."""
    not_modelled: str | None = None
    """The feature of the record that hloopt does not have; None where it was run."""
    has_xla_words: bool | None = None
    """Whether a refusal has the words of the table; None where it is of no interest."""

    @property
    def skip(self) -> str | None:
        """The reason why nothing was run, or None."""
        return self.record.skip or self.not_modelled

    @property
    def status(self) -> str:
        if self.failures:
            return "failed"
        if self.skip is not None:
            return "skipped"
        return "passed" if self.difference is None else "differs"


def run_record(record: Record, create_pass: CreatePass) -> Outcome:
    """Run one record. An exception of a pass fails the record, with its traceback."""
    outcome = Outcome(record)
    if record.skip is not None:
        return outcome
    run = _Run(record, create_pass, outcome)
    try:
        run.record, outcome.difference = with_known_differences(record)
        if is_scheduling_record(record):
            outcome.failures = run_scheduling(record)
        elif record.pass_name == VERIFIER:
            outcome.failures, outcome.has_xla_words = check_verdict(record)
        elif record.pass_name == SHAPE_INFERENCE:
            outcome.failures, outcome.remarks = run_shape_inference(record)
        elif record.pass_name == REPLICATION:
            outcome.failures = check_replication(record)
        elif record.pass_name in MODULE_UNITS:
            check_words(record)
            outcome.failures = list(MODULE_UNITS[record.pass_name](record.fields))
        elif record.pass_name in MEMORY_SPACE_UNITS:
            outcome.failures = list(MEMORY_SPACE_UNITS[record.pass_name](record))
        else:
            run.all()
    except NotModelled as missing:
        outcome.not_modelled = str(missing)
    except RecordError as error:
        outcome.failures.append(str(error))
    except HloError as error:
        outcome.failures.append(render_error(error))
    except Exception:  # the border: one broken pass must not hide the other records
        outcome.failures.append(f"exception\n{traceback.format_exc().rstrip()}")
    if run.scene is not None:
        outcome.result = print_module(run.scene.module)
    return outcome


@dataclass(slots=True)
class _Run:
    record: Record
    create_pass: CreatePass
    outcome: Outcome
    scene: Scene | None = None
    main_pass: Pass | None = None
    checked: int = 0

    def all(self) -> None:
        check_words(self.record)
        steps = list(self.record.steps())
        for step in steps:
            _demand_pass(step)
        module = parse_module(self.record.hlo)
        _configure(module, self.record.config, {step.pass_name for step in steps})
        main = next(step for step in steps if step.phase == "main")
        scene = Scene(
            module,
            SourceNames(module),
            lambda: self._runner(main)(module),
            reference=lambda options: self._reference(main, options),
            options={name: v for name, v in main.options.items() if name != "api"},
            mixes_precision=main.pass_name in _MIXING,
            main_pass=lambda: self.main_pass,
        )
        self.scene = scene
        result_at = max(i for i, s in enumerate(steps) if s.phase in ("main", "after"))
        number = 0
        changed: bool | None = None
        for position, step in enumerate(steps):
            scene.changed = self._attempt(step, scene)
            self._check("after_pass", step.pass_name, scene)
            if step.phase == "then":
                number += 1
                self._check("after_step", number, scene)
            if step.phase == "main":
                changed = scene.changed
                self._check("after_step", 0, scene)
            if position == result_at:
                scene.changed = changed
                self._check(None, None, scene)
        if self.checked != len(self.record.expectations):
            raise RecordError("an expectation belongs to no step, or to several")

    def _reference(self, step: Step, options: Mapping[str, Any] | None) -> Module:
        """The record's module as it is, or after the step with other options."""
        module = parse_module(self.record.hlo)
        _configure(module, self.record.config, {step.pass_name})
        if options is not None:
            self._runner(replace(step, options=options))(module)
        return module

    def _attempt(self, step: Step, scene: Scene) -> bool | None:
        """Run a step; what it reports. An error stays an error unless it is expected."""
        run = self._runner(step)
        before = _canonical_text(scene.module)
        try:
            changed = run(scene.module)
        except HloError as error:
            if not any("error" in expected for expected in self.record.expectations):
                raise
            scene.error = error
            return None
        if changed is False and _canonical_text(scene.module) != before:
            self.outcome.failures.append(f"{step.pass_name} reports no change, but made one")
        return changed

    def _runner(self, step: Step) -> Callable[[Module], bool | None]:
        options = dict(step.options)
        name, api = step.pass_name, options.pop("api", None)
        if name == NO_PASS:
            return lambda module: None  # the expectations are about the text
        if (name, api) == ("copy-insertion", REMOVAL):
            name, api = REMOVAL, None
        if api is not None:
            return _library_call(name, api, options)
        repeats = options.pop("until_fixed_point", False)
        if name == REMATERIALIZATION and self.scene is not None:
            options = rematerialization_options(options, self.scene)
        module_pass = self.create_pass(name, pass_options(name, options, self.record.config))
        if step.phase == "main":
            self.main_pass = module_pass
        if repeats:
            return lambda module: _until_fixed_point(module_pass, module)
        return lambda module: self._run_pass(module_pass, module)

    def _run_pass(self, module_pass: Pass, module: Module) -> bool:
        context = PassContext()
        changed = module_pass.run(module, context)
        if self.scene is not None and module_pass is self.main_pass:
            self.scene.notes += context.notes
        return changed

    def _check(self, when: str | None, value: object, scene: Scene) -> None:
        for expected in self.record.expectations:
            is_timed = any(key in expected for key in WHEN)
            if (is_timed or when) if when is None else expected.get(when) != value:
                continue
            self.checked += 1
            try:
                self.outcome.failures += _failures(scene, expected)
            except NotModelled as missing:  # the others may still fail
                self.outcome.not_modelled = str(missing)


NO_PASS = "none"
"""Stands for no pass at all."""
REMOVAL = "remove-unnecessary-copies"
_MIXING = ("bfloat16-propagation", "float-normalization", "bfloat16-conversion-folding")
"""Passes whose result may mix precisions and counts as valid."""
_MOST_RUNS = 100
_ANALYSES = ("call-graph", "reachability")


def _demand_pass(step: Step) -> None:
    """Raise NotModelled where hloopt does not have the pass or one of the options."""
    name = step.pass_name
    if name == NO_PASS or name in _ANALYSES:
        return
    if is_missing(name) and "api" not in step.options:
        raise NotModelled(f"hloopt has no pass '{name}'")
    if name == "float-normalization" and SUPPORT_OPTIONS[-1] in step.options:
        return
    for option in step.options:
        if lacks(name, option) and "api" not in step.options:
            raise NotModelled(f"hloopt's pass '{name}' has no option '{option}'")


def _until_fixed_point(module_pass: Pass, module: Module) -> bool:
    """Run a pass until it reports no change; whether it did report one."""
    for runs in range(_MOST_RUNS):
        if not module_pass.run(module, PassContext()):
            return runs > 0
    raise RecordError(f"there is no fixed point after {_MOST_RUNS} runs")


def _canonical_text(module: Module) -> str:
    return print_module(module, PrintOptions(print_large_constants=True))


def _failures(scene: Scene, expected: Mapping[str, Any]) -> Iterator[str]:
    if scene.error is not None and "error" not in expected:
        yield f"{shorten(expected)}: the pass failed: {scene.error.message}"
        return
    try:
        for found in mismatches(scene, expected):
            yield f"{shorten(expected)}: {found}"
    except RecordError as error:
        yield f"{shorten(expected)}: {error}"


def shorten(expected: Mapping[str, Any]) -> str:
    """An expectation in one line of bounded length."""
    return ", ".join(f"{key} {_ellipsis(value)}" for key, value in expected.items())


def _ellipsis(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 100 else text[:97] + "..."


_KNOWN = frozenset(
    (
        ("use_shardy_partitioner", "call-inliner"),
        ("use_spmd_partitioning", "while-loop-all-reduce-code-motion"),
        ("use_spmd_partitioning", PIPELINER),
        ("use_spmd_partitioning", "all-gather-dynamic-slice-simplifier"),
    ),
)
"""Configurations that passes get by an option, or take for granted, as no text can state them."""


def _configure(module: Module, config: Mapping[str, Any], pass_names: set[str]) -> None:
    """Give a module the configuration of its record.

    Raises RecordError for what has no effect, NotModelled for what only passes to come look at.
    """
    for name, value in config.items():
        if name in _COUNTS:
            module.set_attribute(name, str(value))
        elif name == "allow_excess_precision":
            is_read = value is True or any(has_option(used, name) for used in pass_names)
            if not is_read:  # true is the default
                raise NotModelled(f"hloopt's passes do not look at {name}")
        elif name == DEBUG_OPTIONS:
            left = [o for o in value if not any(has_option(used, o) for used in pass_names)]
            if left:
                raise NotModelled(f"hloopt's passes do not look at the debug option '{left[0]}'")
        elif value is False or any((name, used) in _KNOWN for used in pass_names):
            continue
        else:
            raise RecordError(f"config {name}={value} has no meaning for the record's passes")


def _library_call(
    pass_name: str, api: str, options: Mapping[str, Any]
) -> Callable[[Module], bool | None]:
    match pass_name, api, options:
        case "call-graph" | "reachability", "analysis", _:
            return lambda module: None  # the expectations ask
        case "collective-pipeliner", "predicate_only", {**rest} if not rest:
            return lambda module: None  # the expectations ask
        case "algebraic-simplifier" | "algsimp", "is_non_negative", _:
            return lambda module: None  # the expectations ask
        case "scatter_simplifier", "is_simplified_scatter", {**rest} if not rest:
            return lambda module: None  # the expectations ask
        case "call-inliner", "inline_one_call", {"call": str(call), **rest} if not rest:
            from hloopt.passes.call_graph.call_inliner import inline_call

            return _on_instruction(call, lambda instruction: inline_call(instruction))
        case (
            "permute-fusion-operands",
            "permute_fusion_operands",
            {"fusion": str(fusion), "permutation": list(permutation), **rest},
        ) if not rest:
            from hloopt.passes.rewriting.fusion_operands import permute_fusion_operands

            return _on_instruction(
                fusion, lambda instruction: permute_fusion_operands(instruction, permutation)
            )
        case "block-scaling-rewriter", "cudnn_supports_scaled_dot", {**rest} if not rest:
            return lambda module: None  # the expectations ask
        case (
            "block-scaling-rewriter",
            "cudnn_add_scale_swizzle",
            {"fusion": str(fusion), **rest},
        ) if not rest:
            from hloopt.passes.precision.block_scaling.cudnn_fusions import cudnn_add_scale_swizzle

            return _on_instruction(fusion, cudnn_add_scale_swizzle)
        case (
            (
                "collective-pipeliner"
                | "call-inliner"
                | "permute-fusion-operands"
                | "block-scaling-rewriter"
            ),
            _,
            _,
        ):
            raise RecordError(f"unknown options of {api} of {pass_name}: {dict(options)}")
    raise NotModelled(f"hloopt has no '{api}' of '{pass_name}'")


def _on_instruction(name: str, edit: Callable[[Instruction], object]) -> Callable[[Module], None]:
    """The function for an edit at the instruction called `name`, or at the root of ENTRY."""

    def run(module: Module) -> None:
        named = (i for i in module.instructions() if i.name == name)
        found = module.entry.root if name == "root" else next(named, None)
        if found is None:
            raise RecordError(f"%{name} is not in the module")
        edit(found)

    return run
