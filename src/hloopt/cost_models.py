"""The model of time that is meant: its name, with the target and files it needs.

    choice = CostModelChoice(name="sol", target="h100_sxm")
    model = latency_model(choice, module, is_gpu=True)
    model.node_time(instruction), model.edge_time(start, done)

The options `cost_model`, `cost_table`, `profile`, `target`, `collective_perf_table`,
`matmul_perf_table` and `smooth_tables` of passes and commands mean this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never, get_args

from hloopt.diagnostics import HloError

if TYPE_CHECKING:
    from hloopt.analysis.latency import LatencyModel
    from hloopt.ir import Module

CostModelName = Literal["fixed", "sol", "roofline", "profile", "table"]
COST_MODELS: tuple[CostModelName, ...] = get_args(CostModelName)
_SOL_DOES = "'sol' does, for a target that has a section gpu: `hloopt targets` lists them"
NO_TARGET = (
    "no target: times are XLA's fixed constants, abstract units; --target NAME gives times "
    "(hloopt targets)"
)
"""The note in a report of abstract cycles where no cost model was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModelChoice:
    """The choice of a cost model: its name, target and files."""

    name: CostModelName | None = None
    """None: what the file given is for; else, where a target is given, `sol` if it has the figures
    for that and `roofline` if not; else `fixed`."""
    target: str | None = None
    """The hardware: the name of a target, or the path of its description."""
    cost_table: str | None = None
    """The path of a table, for `table`."""
    profile: str | None = None
    """The path of a profile, for `profile`."""
    collective_perf_table: str | None = None
    """The path of measured collectives, for `sol`."""
    matmul_perf_table: str | None = None
    """The path of measured products, for `sol`."""
    smooth_tables: bool = False
    """Whether times that `sol` takes from tables are made monotone in size."""

    @property
    def is_choice(self) -> bool:
        """Whether anything is said."""
        return self != CostModelChoice()

    @property
    def concerns_tables(self) -> bool:
        """Whether anything is said of tables of measurements."""
        given = self.collective_perf_table, self.matmul_perf_table
        return self.smooth_tables or any(path is not None for path in given)

    @property
    def estimates_fusion(self) -> bool:
        """Whether times before fusion are those of the kernels that fusion would make."""
        return self.target is not None and self.name != "fixed"

    def resolved(self) -> CostModelName:
        """The name of the model, of one for a target after reading that. Raises HloError as
        `check`, and for a bad target."""
        return self.check() or self.for_target()

    def for_target(self) -> Literal["sol", "roofline"]:
        """The model that answers by the figures of the target, also what a file does not name.

        Raises HloError for a bad target.
        """
        if self.name == "sol" or self.name == "roofline":
            return self.name
        from hloopt.targets import load_target

        assert self.target is not None  # else there is none
        if load_target(self.target).gpu is not None:
            return "sol"
        self._refuse_perf_tables("roofline")
        return "roofline"

    def check(self) -> CostModelName | None:
        """The name of the model as far as it is known without reading the target: None where that
        decides. Raises HloError if the model lacks its file or target, or a file has no use."""
        files: dict[CostModelName, tuple[str, str | None]] = {
            "table": ("cost_table", self.cost_table),
            "profile": ("profile", self.profile),
        }
        given = [model for model, (_, path) in files.items() if path is not None]
        without_file: CostModelName | None = "fixed" if self.target is None else None
        name = self.name or (given[0] if given else without_file)
        for model, (option, path) in files.items():
            if model == name and path is None:
                raise HloError(
                    f"cost model '{name}' needs a file", help=f"give its path as {option}"
                )
            if model != name and path is not None:
                raise HloError(
                    f"cost model '{name}' does not read the {option} {path}",
                    help=f"'{model}' does: leave out cost_model, or say '{model}'",
                )
        if name == "sol" and self.target is None:
            from hloopt.analysis.latency.speed_of_light import known_targets

            raise needs_target("cost model 'sol'", known_targets())
        if name == "roofline" and self.target is None:
            raise needs_target("cost model 'roofline'")
        # Without a target nothing but a file answers.
        if name is not None and (self.target is None or name in ("fixed", "roofline")):
            self._refuse_perf_tables(name)
        return name

    def _refuse_perf_tables(self, name: CostModelName) -> None:
        """Raise HloError for what only `sol` reads, where that has no part in a model."""
        for option, path in (
            ("collective_perf_table", self.collective_perf_table),
            ("matmul_perf_table", self.matmul_perf_table),
        ):
            if path is not None:
                raise HloError(
                    f"cost model '{name}' does not read the {option} {path}", help=_SOL_DOES
                )
        if self.smooth_tables:
            raise HloError(
                f"cost model '{name}' has no tables for smooth_tables to smooth", help=_SOL_DOES
            )


def latency_model(
    choice: CostModelChoice,
    module: Module,
    *,
    is_gpu: bool,
    approx_costly_collectives: bool = False,
    schedule_send_recvs: bool = True,
) -> LatencyModel:
    """The model of time for a module. Raises HloError for a bad choice, file or target.

    What a table or profile does not name is answered by `sol` or `roofline` if a target is given,
    else by `fixed`, whose constants are those of XLA:GPU with `is_gpu`, else those that all targets
    share.
    These are the times that XLA's schedulers ask for; `RunTimes` makes times of a run of them.
    """
    from hloopt.analysis.latency import FixedModel, GpuFixedModel
    from hloopt.files import read_source

    name = choice.resolved()
    model: LatencyModel = FixedModel()
    if is_gpu:
        model = GpuFixedModel(approx_costly_collectives=approx_costly_collectives)
    if name != "fixed" and choice.target is not None:
        model = _model_of_target(choice, module, schedule_send_recvs=schedule_send_recvs)
    match name:
        case "fixed" | "sol" | "roofline":  # `resolved` has refused the others without a target
            return model
        case "table":
            from hloopt.analysis.latency.table import CostTable, TableModel

            assert choice.cost_table is not None  # `resolved` has refused it
            source = read_source(choice.cost_table)
            return TableModel(CostTable.parse(source.text, source.name), model)
        case "profile":
            from hloopt.analysis.latency.profile import Profile, ProfileModel

            assert choice.profile is not None  # `resolved` has refused it
            source = read_source(choice.profile)
            profile = Profile.parse(source.text, source.name).for_module(module)
            return ProfileModel(profile, model, schedule_send_recvs)
    assert_never(name)


def _model_of_target(
    choice: CostModelChoice, module: Module, *, schedule_send_recvs: bool
) -> LatencyModel:
    from hloopt.targets import load_target

    assert choice.target is not None  # else there is none
    target = load_target(choice.target)
    if choice.for_target() == "roofline":
        from hloopt.analysis.latency.roofline import RooflineModel

        return RooflineModel(target, module, schedule_send_recvs=schedule_send_recvs)
    from hloopt.analysis.latency.speed_of_light import Measurements, SpeedOfLightModel

    collectives = matmuls = None
    if target.gpu is not None:  # else the model refuses the target
        from hloopt.analysis.latency.perf_table_files import read_collectives, read_matmuls
        from hloopt.files import read_source

        if choice.collective_perf_table is not None:
            source = read_source(choice.collective_perf_table)
            collectives = read_collectives(source.text, source.name, target.gpu)
        if choice.matmul_perf_table is not None:
            source = read_source(choice.matmul_perf_table)
            matmuls = read_matmuls(source.text, source.name, target.gpu)
    tables = Measurements(collectives=collectives, matmuls=matmuls, smooth=choice.smooth_tables)
    return SpeedOfLightModel(target, schedule_send_recvs=schedule_send_recvs, measurements=tables)


def needs_target(what: str, names: Iterable[str] | None = None) -> HloError:
    """The error of whoever asks for figures of a device and names none; `names` would do."""
    from hloopt.targets import target_names

    known = ", ".join(target_names() if names is None else names)
    return HloError(
        f"{what} needs a target",
        help=f"--target NAME, or a file *.yaml: {known} (`hloopt targets` describes them)",
        code="HLO014",
    )


def describe(choice: CostModelChoice) -> str:
    """The model in words, for titles of reports. Raises HloError for a bad choice or target."""
    from hloopt.targets import load_target

    name = choice.resolved()
    if name == "fixed":
        return "fixed constants"
    path = choice.cost_table or choice.profile
    source = "" if path is None else f"the {name} {path}"
    if choice.target is None:
        return source
    model = "speed of light on" if choice.for_target() == "sol" else "roofline of"
    rates = f"{model} {load_target(choice.target).title}"
    if choice.collective_perf_table is not None:
        rates += f", collectives of {choice.collective_perf_table}"
    if choice.matmul_perf_table is not None:
        rates += f", products of {choice.matmul_perf_table}"
    if choice.smooth_tables:
        rates += ", tables smoothed"
    return f"{source}, else {rates}" if source else rates


def cost_model_to_json(choice: CostModelChoice) -> dict[str, str | bool | None]:
    """The model of times as plain data: its name, its files, and the name of the target where
    its figures have a part in it. Raises HloError for a bad choice or target."""
    from hloopt.targets import load_target

    name = choice.resolved()
    target = None
    if name != "fixed" and choice.target is not None:
        target = load_target(choice.target).name
    return {
        "cost_model": name,
        "target": target,
        "cost_table": choice.cost_table,
        "profile": choice.profile,
        "collective_perf_table": choice.collective_perf_table,
        "matmul_perf_table": choice.matmul_perf_table,
        "smooth_tables": choice.smooth_tables,
    }


def model_notes(choice: CostModelChoice, module: Module) -> list[str]:
    """Notes for readers of times by this model. O(instructions)."""
    from hloopt.analysis.latency.speed_of_light import unsupported_by_xla

    name = choice.resolved()
    if name == "fixed":
        if not choice.is_choice:
            return [NO_TARGET]
        return ["cycles are abstract, XLA's constants by kind of instruction: they are no times"]
    if name == "roofline":
        return _roofline_notes(choice, module)
    if name == "sol":
        notes = []
        if (unmeasured := _unmeasured_note(choice)) is not None:
            notes.append(unmeasured)
        if (reason := unsupported_by_xla(module)) is not None:
            notes.append(f"XLA:GPU would schedule this module by fixed constants: {reason}")
        return notes
    return []


def _roofline_notes(choice: CostModelChoice, module: Module) -> list[str]:
    from hloopt.analysis.cost.memory_rates import unrated_note
    from hloopt.targets import load_target

    assert choice.target is not None  # `resolved` has refused it
    notes = []
    if choice.name is None:
        notes.append(
            "times by roofline, bytes and flops at peak rates: the target lacks the figures that "
            "the cost model sol needs; XLA:GPU falls back to fixed constants on such devices"
        )
    unrated = unrated_note(module, load_target(choice.target))
    return notes if unrated is None else [*notes, unrated]


def _unmeasured_note(choice: CostModelChoice) -> str | None:
    """The note on a device of which XLA has not measured what its estimator needs; None for others
    and for those that have no such figures at all."""
    from hloopt.targets import load_target
    from hloopt.targets.performance import load_tables

    gpu = None if choice.target is None else load_target(choice.target).gpu
    if gpu is None:
        return None
    tables = None if gpu.tables is None else load_tables(gpu.tables)
    missing, instead = [], []
    if tables is None and choice.collective_perf_table is None:
        missing.append("no collectives")
        instead.append("those of collectives within a node are guesses")
    if (tables is None or not tables.matmuls) and choice.matmul_perf_table is None:
        missing.append("no matrix products")
        instead.append("those of products are by the rates of the target")
    if not missing:
        return None
    return (
        "XLA:GPU would fall back to fixed constants on this device, of which it has measured "
        f"{' and '.join(missing)}; of the times here {' and '.join(instead)}"
    )
