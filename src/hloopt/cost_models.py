"""Which model of time is meant: its name, with the target and files it needs.

    choice = CostModelChoice(name="table", cost_table="costs.json")
    model = latency_model(choice, module, is_gpu=True)
    model.node_time(instruction), model.edge_time(start, done)

The options `cost_model`, `cost_table`, `profile` and `target` of passes and commands mean this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from hloopt.diagnostics import HloError

if TYPE_CHECKING:
    from hloopt.analysis.latency import LatencyModel
    from hloopt.ir import Module

CostModelName = Literal["fixed", "table"]
COST_MODELS: tuple[CostModelName, ...] = get_args(CostModelName)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModelChoice:
    """What somebody says about the times to reckon with."""

    name: CostModelName | None = None
    """None: what the file given is for, else `fixed`."""
    cost_table: str | None = None
    """The path of a table, for `table`."""

    def resolved(self) -> CostModelName:
        """The name of the model. Raises HloError if it lacks its file, or a file has no use."""
        files: dict[CostModelName, tuple[str, str | None]] = {
            "table": ("cost_table", self.cost_table)
        }
        given = [model for model, (_, path) in files.items() if path is not None]
        name = self.name or (given[0] if given else "fixed")
        for model, (option, path) in files.items():
            if model == name and path is None:
                raise HloError(f"cost model '{name}' needs a {option}", help=f"give {option} too")
            if model != name and path is not None:
                raise HloError(
                    f"cost model '{name}' takes no {option}",
                    help=f"'{model}' does; say only one of cost_model and {option}",
                )
        return name


def latency_model(
    choice: CostModelChoice,
    module: Module,
    *,
    is_gpu: bool,
    approx_costly_collectives: bool = False,
) -> LatencyModel:
    """The model of time for a module. Raises HloError for a bad choice or file.

    `is_gpu`: constants are those of XLA:GPU, not those that all targets share.
    """
    from hloopt.analysis.latency import CostTable, FixedModel, GpuFixedModel, TableModel
    from hloopt.files import read_source

    choice.resolved()
    fixed: LatencyModel = FixedModel()
    if is_gpu:
        fixed = GpuFixedModel(approx_costly_collectives=approx_costly_collectives)
    if choice.cost_table is not None:
        source = read_source(choice.cost_table)
        return TableModel(CostTable.parse(source.text, source.name), fixed)
    return fixed
