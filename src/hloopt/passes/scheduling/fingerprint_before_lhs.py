"""Mark a module with what it was before scheduling, so that profiles can name it."""

from __future__ import annotations

from hashlib import blake2b

from hloopt.ir.attributes.values import format_frontend_attributes, parse_frontend_attributes
from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.text import PrintOptions, print_module

ATTRIBUTE = "fingerprint_before_lhs"
_BYTES = 16
_STYLE = PrintOptions.canonical()._replace(print_backend_config=True, print_full_bodies=False)


@register(
    "fingerprint-before-lhs",
    preserves="bits",
    xla=XlaPass("gpu::ScheduleGpuModule", "xla/service/gpu/gpu_hlo_schedule.h", compared="nothing"),
)
class FingerprintBeforeLhs(ModulePass):
    """Write a fingerprint of the module into its frontend attributes, as XLA:GPU does.

    32 hexadecimal digits that depend on the graph and on the backend_configs, not on names of
    instructions or on metadata. They are not those that XLA computes of the same module, so one
    that is there already stays. A module with a schedule gets none. Linear in the printed text.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        attributes = parse_frontend_attributes(module.attributes.get("frontend_attributes", "{}"))
        if module.is_scheduled or ATTRIBUTE in attributes:
            return False
        what = "the module gets its fingerprint"
        if not context.apply(module.entry.root, what, remark=False):
            return False
        text = print_module(module, _STYLE)
        attributes[ATTRIBUTE] = blake2b(text.encode(), digest_size=_BYTES).hexdigest()
        module.set_attribute("frontend_attributes", format_frontend_attributes(attributes))
        return True
