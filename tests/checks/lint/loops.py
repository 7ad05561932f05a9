"""Modules with a loop, whatever its body does."""

from __future__ import annotations

UNKNOWN_LIMIT = "get-tuple-element(q), index=1"
"""The limit of a loop of an unknown number of trips, where its first element is an s32[]."""


def in_loop(
    work: str,
    results: str,
    *shapes: str,
    computations: str = "",
    header: str = "is_scheduled=true",
    limit: str = "constant(10)",
    config: str = "",
) -> str:
    """A module with a loop that counts to 10; its state has a counter and arrays of some shapes.

    `work` calls the arrays v1, v2, …; `results` names those that the next trip gets.
    """
    state = f"(s32[], {', '.join(shapes)})"
    numbers = range(1, len(shapes) + 1)
    taken = "\n".join(
        f"  v{n} = {shape} get-tuple-element(p), index={n}"
        for n, shape in zip(numbers, shapes, strict=True)
    )
    given = "\n".join(
        f"  a{n} = {shape} parameter({n - 1})" for n, shape in zip(numbers, shapes, strict=True)
    )
    return f"""HloModule m, {header}
{computations}
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
{taken}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  {work}
  ROOT t = {state} tuple(next, {results})
}}
condition {{
  q = {state} parameter(0)
  j = s32[] get-tuple-element(q), index=0
  limit = s32[] {limit}
  ROOT less = pred[] compare(j, limit), direction=LT
}}
ENTRY e {{
{given}
  zero = s32[] constant(0)
  state = {state} tuple(zero, {", ".join(f"a{n}" for n in numbers)})
  ROOT w = {state} while(state), condition=condition, body=body{config}
}}
"""


def in_two_loops(inner: str, *shapes: str, limit: str = "constant(10)") -> str:
    """The module of `in_loop`, of state `shapes`, as the body of another loop around it."""
    state = f"(s32[], {', '.join(shapes)})"
    called = inner.partition("\n")[2].replace("ENTRY e", "inner")
    numbers = range(1, len(shapes) + 1)
    for n in numbers:
        called = called.replace(f" a{n}", f" e{n}")
    given = ", ".join(f"v{n}" for n in numbers)
    work = f"r = {state} call({given}), to_apply=inner\n" + "\n".join(
        f"  l{n} = {shape} get-tuple-element(r), index={n}"
        for n, shape in zip(numbers, shapes, strict=True)
    )
    results = ", ".join(f"l{n}" for n in numbers)
    text = in_loop(work, results, *shapes, computations=called, limit=limit)
    for name in ("body", "condition"):
        first, _, last = text.rpartition(f"\n{name} {{")
        text = f"{first}\nouter_{name} {{" + last.replace(f"{name}={name}", f"{name}=outer_{name}")
    return text
