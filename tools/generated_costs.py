"""Modules of random products and all-reduces, to ask XLA:GPU's speed-of-light estimator about."""

from __future__ import annotations

import random
from typing import NamedTuple

_SPLIT = 8
"""Parts of a contraction that is split."""
_DEVICES = 8
_LARGEST = 14
"""The binary logarithm of the largest m, n and k."""
_SHARE_OF_DECODING = 0.3
"""The share of products with a small m."""
_OPERANDS = (
    *("bf16", "bf16", "bf16", "f16", "f8e4m3fn,f8e4m3fn", "f8e4m3fn,f8e5m2", "f8e5m2,f8e5m2"),
    *("f32", "s8"),
)
_RESULTS = ("f32", "f32", "f32", "f32", "bf16", "f16")
_STRATEGIES = ("DEFAULT", "TRITON_ONE_SHOT", "TRITON_TWO_SHOT")
_REDUCERS = ("add", "add", "add", "maximum", "minimum", "multiply")
_REDUCED = {"f32": 4, "bf16": 2, "f16": 2, "s32": 4, "f64": 8}
_SHARE = 0.7
"""The share of all-reduces that are split, and of those with a configuration."""
_SMALLEST, _GREATEST = 8, 26
"""The binary logarithms of the bytes of all-reduces."""


class Question(NamedTuple):
    """An instruction: computations that it calls, its operands, and itself by its number."""

    callee: str
    operands: list[str]
    shape: str
    text: str
    """With `{name}` for its name, `{operands}`, and `{callee}` for the name of its computation."""
    done: str = ""
    """The opcode that ends it."""


def products(seed: int, count: int) -> list[Question]:
    """Dots, Triton fusions around them, split contractions, and calls of cuBLASLt."""
    choices = random.Random(seed)
    return [_product(choices) for _ in range(count)]


def all_reduces(seed: int, count: int) -> list[Question]:
    """All-reduces of 256 B to 64 MiB in a node, some of which are kernels of XLA."""
    choices = random.Random(seed)
    return [_all_reduce(choices, number) for number in range(count)]


def _product(choices: random.Random) -> Question:
    lhs, _, rhs = choices.choice(_OPERANDS).partition(",")
    result = "s32" if lhs == "s8" else choices.choice(_RESULTS)
    form = choices.choice(("dot", "dot", "fusion", "fusion", "narrowed", "split", "library"))
    m, n, k = (int(2 ** choices.uniform(0, _LARGEST)) for _ in range(3))
    if choices.random() < _SHARE_OF_DECODING:
        m = choices.randint(1, 16)
    b = choices.choice((1, 1, 1, 2, 3, 4, 7, 8, 32))
    if form == "split":
        b, k = _SPLIT, -(-k // _SPLIT)
    operands = [f"{lhs}[{b},{m},{k}]", f"{rhs or lhs}[{b},{k},{n}]"]
    shape = f"{result}[{b},{m},{n}]"
    if form == "dot":
        return Question("", operands, shape, _escaped(_DOT).replace("x, y", "{operands}"))
    if form == "library":
        return Question("", operands, f"({shape}, s8[64])", _LIBRARY)
    body = [f"x = {operands[0]} parameter(0)", f"y = {operands[1]} parameter(1)"]
    dot = f"ROOT d = {shape} {_DOT}"
    if form == "split":
        body = [f"x = {lhs}[{m},{b},{k}] bitcast(p)", f"y = {operands[1]} bitcast(q)"]
        operands = [f"{lhs}[{m},{b * k}]", f"{rhs or lhs}[{b * k},{n}]"]
        body = [f"p = {operands[0]} parameter(0)", f"q = {operands[1]} parameter(1)", *body]
        dot = dot.replace("lhs_batch_dims={0}", "lhs_batch_dims={1}")
    if form == "narrowed":
        dot = f"d = f32[{b},{m},{n}] {_DOT}\nROOT c = {shape} convert(d)"
    kind = choices.choice(("__triton_gemm", "__triton_nested_gemm_fusion"))
    config = _escaped(f'{{"fusion_backend_config":{{"kind":"{kind}"}}}}')
    text = f"fusion({{operands}}), kind=kCustom, calls={{callee}}, backend_config={config}"
    return Question("\n".join((*body, dot)), operands, shape, text)


def _escaped(text: str) -> str:
    """A text as `str.format` gives it back."""
    return text.replace("{", "{{").replace("}", "}}")


_DOT = (
    "dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
    "lhs_contracting_dims={2}, rhs_contracting_dims={1}"
)
_LIBRARY = (
    'custom-call({operands}), custom_call_target="__cublas$lt$matmul", '
    'backend_config={{"gemm_backend_config":{{"alpha_real":1,"beta":0,"dot_dimension_numbers":{{'
    '"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"],'
    '"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"]}}}}}}'
)


def _all_reduce(choices: random.Random, number: int) -> Question:
    element_type = choices.choice(list(_REDUCED))
    size = int(2 ** choices.uniform(_SMALLEST, _GREATEST))
    shape = f"{element_type}[{size // _REDUCED[element_type]}]"
    devices = choices.choice((2, 4, 8))
    reducer = choices.choice(_REDUCERS)
    lines = [f"x = {element_type}[] parameter(0)", f"y = {element_type}[] parameter(1)"]
    lines.append(f"ROOT z = {element_type}[] {reducer}(x, y)")
    is_split = choices.random() < _SHARE
    config = ""
    if choices.random() < _SHARE:
        sync, strategy = choices.choice(("true", "false")), choices.choice(_STRATEGIES)
        fields = f'{{"is_sync":{sync},"kernel_strategy":"KERNEL_STRATEGY_{strategy}"}}'
        config = _escaped(f', backend_config={{"collective_backend_config":{fields}}}')
    text = (
        f"all-reduce{'-start' if is_split else ''}({{operands}}), to_apply={{callee}}, "
        f"replica_groups=[{_DEVICES // devices},{devices}]<=[{_DEVICES}], "
        f"channel_id={number + 1}, use_global_device_ids=true{config}"
    )
    return Question("\n".join(lines), [shape], shape, text, "all-reduce-done" if is_split else "")


def module_text(asked: list[Question]) -> str:
    """A module of all questions, each `q` and its number, and a collective, to be scheduled."""
    computations, entry, results = [], [], []
    parameters = 0
    for number, question in enumerate(asked):
        name, callee = f"q{number}", f"of_q{number}"
        if question.callee:
            computations.append(f"{callee} {{\n{question.callee}\n}}")
        operands = []
        for shape in question.operands:
            operands.append(f"p{parameters}")
            entry.append(f"p{parameters} = {shape} parameter({parameters})")
            parameters += 1
        text = question.text.format(operands=", ".join(operands), callee=callee)
        entry.append(f"{name} = {question.shape} {text}")
        if question.done:
            entry.append(f"{name}_done = {question.shape} {question.done}({name})")
            name += "_done"
        results.append((question.shape, name))
    entry.append(f"last = f32[] parameter({parameters})")
    entry.append("start = f32[] all-reduce-start(last), to_apply=sum, replica_groups={}")
    entry.append("done = f32[] all-reduce-done(start)")
    results.append(("f32[]", "done"))
    shapes, names = (", ".join(part) for part in zip(*results, strict=True))
    entry.append(f"ROOT all = ({shapes}) tuple({names})")
    reducer = "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }"
    head = f"HloModule generated, num_partitions={_DEVICES}"
    body = "\n".join(entry)
    return "\n".join((head, reducer, *computations, f"ENTRY e {{\n{body}\n}}")) + "\n"
