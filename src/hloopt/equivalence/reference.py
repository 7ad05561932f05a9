"""Whether modules compute the same: they are run on the same inputs, and the outputs compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from hloopt.equivalence.comparison import Comparison, Mismatch
from hloopt.equivalence.examination import Examination
from hloopt.equivalence.judgement import Judge
from hloopt.equivalence.measures import loose_tolerance
from hloopt.equivalence.pairing import Pairing, pair_up, pair_up_global
from hloopt.equivalence.path_types import PathTypes, ReadType, rounds_in_sums
from hloopt.equivalence.precision import PrecisionJudge
from hloopt.equivalence.runs import Runs
from hloopt.equivalence.settings import RunSettings
from hloopt.equivalence.signature import first_other, may_be_cut
from hloopt.equivalence.widening import widened_inputs, without_narrow_floats
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.exactness import depends_on_layout, only_moves_data, rounded_types
from hloopt.interpreter.rounding_noise import MovableRoundings
from hloopt.interpreter.values import dtype_of
from hloopt.ir.module import Module
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.preserves import Preserves


def pair(left: Module, right: Module, settings: RunSettings) -> Pairing | str:
    """The devices that two modules run on, with what of one belongs to the other; or what is other
    about them.

    Nothing runs. Raises RunError where the text does not tell how arrays are cut.
    """
    if settings.is_global:
        return pair_up_global(left, right, settings.counts)
    other = first_other(left, right)
    if other and not may_be_cut(left, right):
        return other
    return pair_up(settings.place(left), settings.place(right), settings.counts)


class Reference:
    """A module whose results others are compared with. Keeps what it did for every seed.

    Nothing runs before something is compared with it. Running it raises RunError; what is compared
    with it may fail, which is a mismatch.
    """

    def __init__(self, module: Module, settings: RunSettings) -> None:
        self.module = module
        self.settings = settings
        self._runs: Runs | None = None

    def compare(self, module: Module, preserves: Preserves = "rounding") -> Mismatch | None:
        """The reason why `module` may compute something else; None where it does not."""
        return self.examine(module, preserves).mismatch

    def examine(
        self,
        module: Module,
        preserves: Preserves = "rounding",
        read_types: Sequence[ReadType] = (),
    ) -> Comparison:
        """Compare a module, with what there is to report of it.

        `read_types` say what the backend rounds, which passes that change precision rely on.
        """
        pairing = pair(self.module, module, self.settings)
        if isinstance(pairing, str):
            return Comparison(Mismatch(pairing))
        if preserves == "precision":
            return self._examine_precision(pairing, read_types)
        is_bitwise = preserves == "bits" and self.settings.engine is None
        is_exact = self._only_moves and only_moves_data(module)
        if is_bitwise and not is_exact:
            both = (*self.module.instructions(), *module.instructions())
            is_exact = not any(map(depends_on_layout, both))

        def judge() -> Judge:
            return Judge(
                self.settings.tolerance,
                is_exact=is_exact,
                precision=self._precision,
                is_bitwise=is_bitwise,
            )

        return Examination(
            self._runs_of(pairing), pairing, self.settings, judge(), judge(), preserves
        ).run()

    def _examine_precision(self, pairing: Pairing, read_types: Sequence[ReadType]) -> Comparison:
        """Compare what modules compute, and what they compute where nothing is rounded to fewer
        than 32 bits: whatever is other there is no matter of precision."""
        runs = self._runs_of(pairing)
        types = PathTypes(runs.placement.program, read_types)
        settings = self.settings
        found = Examination(
            runs,
            pairing,
            settings,
            PrecisionJudge(settings.tolerance, types),
            PrecisionJudge(settings.tolerance, types),
            "precision",
            MovableRoundings(
                types.movable_roundings(),
                any(map(rounds_in_sums, (pairing.left.program, pairing.right.program))),
            ),
        ).run()
        if not types.has_narrow or (found.mismatch is not None and found.mismatch.is_decided):
            return found
        try:
            wide = self._examine_in_f32(pairing, types)
        except RunError as error:
            found.notes.append(f"the modules with f32 for narrow floats: {error.message}")
            return found
        if wide.mismatch is not None and wide.mismatch.is_decided:
            reason = f"with f32 for all narrower floats, {wide.mismatch.reason}"
            found.mismatch = replace(wide.mismatch, reason=reason)
        elif wide.mismatch is not None:
            found.notes.append(f"the modules with f32 for narrow floats: {wide.mismatch.reason}")
        return found

    def _examine_in_f32(self, pairing: Pairing, types: PathTypes) -> Comparison:
        left, right = map(without_narrow_floats, (pairing.left.module, pairing.right.module))
        inputs = widened_inputs(self.settings.inputs, pairing.left.module)
        settings = self.settings._replace(inputs=inputs)
        again = pair(left, right, settings)
        if isinstance(again, str):
            return Comparison(Mismatch(again, is_decided=False))
        program = again.left.program
        movable = {
            program.computations[constant.parent.name][constant.name]: dtype
            for constant, dtype in types.rounded_constants().items()
        }
        return Examination(
            Runs(again.left, again.left_plans, settings),
            again,
            settings,
            PrecisionJudge(settings.tolerance, types),
            PrecisionJudge(settings.tolerance, types),
            "precision",
            MovableRoundings(movable),
        ).run()

    @cached_property
    def _only_moves(self) -> bool:
        return only_moves_data(self.module)

    @cached_property
    def _precision(self) -> float:
        names = rounded_types(self.module)
        dtypes = (dtype_of(ELEMENT_TYPES[name]) for name in names)
        return max(map(loose_tolerance, dtypes), default=0.0)

    def _runs_of(self, pairing: Pairing) -> Runs:
        """Those there are, unless this comparison asks for other devices or inputs."""
        runs = self._runs
        if runs is None or (runs.placement.grid, runs.plans) != (
            pairing.left.grid,
            pairing.left_plans,
        ):
            runs = self._runs = Runs(pairing.left, pairing.left_plans, self.settings)
        return runs
