"""The model of time that a configuration of the scheduler asks for."""

from __future__ import annotations

from hloopt.analysis.latency import LatencyModel
from hloopt.cost_models import latency_model
from hloopt.diagnostics import PassRefused, counted
from hloopt.ir import Instruction, Module
from hloopt.scheduling.config import SchedulerConfig

_SHOWN = 5


def model_of(config: SchedulerConfig, module: Module) -> LatencyModel:
    """The times that a configuration, resolved, asks for.

    Raises HloError for a bad file or target, PassRefused for a profile that the checker of its
    accuracy refuses.
    """
    model = latency_model(
        config.model_choice,
        module,
        is_gpu=config.preset == "xla-gpu",
        approx_costly_collectives=config.enable_approx_costly_collectives,
        schedule_send_recvs=bool(config.schedule_send_recvs),
    )
    if config.pgle_accuracy_checker == "error" and config.profile is not None:
        from hloopt.analysis.latency.profile import missing_in_module

        _refuse_gaps(missing_in_module(model, module))
    return model


def _refuse_gaps(missing: list[Instruction]) -> None:
    if missing:
        names = ", ".join(f"%{instruction.name}" for instruction in missing[:_SHOWN])
        raise PassRefused(
            f"Found {counted(len(missing), 'missing instruction')}. Discarding the profile.",
            help=f"the profile does not name {names}{' …' if len(missing) > _SHOWN else ''}",
        )
