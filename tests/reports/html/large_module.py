"""A module of as many instructions as one wants, in layers as a training step has them."""

from __future__ import annotations

from itertools import count

_STEP = 30
"""Instructions of a layer."""


def large_module(size: int) -> str:
    """The text of a scheduled module with about `size` instructions in its entry."""
    lines = ["  %p = bf16[512,512]{1,0} parameter(0)", "  %w = bf16[512,512]{1,0} parameter(1)"]
    last, numbers = "p", count()
    for layer in range(size // _STEP):
        for part in range(_STEP):
            block = "attention" if part < _STEP // 2 else "mlp"
            name = f"fusion.{next(numbers)}"
            scope = f"jit(train_step)/jvp(model)/layer_{layer}/{block}/dense_{part % 5}/add"
            place = f'source_file="model/layers.py" source_line={100 + part}'
            operand = "w" if part % 7 == 0 else last
            lines.append(
                f"  %{name} = bf16[512,512]{{1,0}} add(%{last}, %{operand}), "
                f'metadata={{op_name="{scope}" {place}}}'
            )
            last = name
    lines.append(f"  ROOT %r = bf16[512,512]{{1,0}} negate(%{last})")
    body = "\n".join(lines)
    return f"HloModule jit_train_step, is_scheduled=true\n\nENTRY %main {{\n{body}\n}}\n"
