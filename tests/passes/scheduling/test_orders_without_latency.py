"""Schedules for memory alone, what takes them away, and the fingerprint from before them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from hloopt.ir import Module
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.fingerprint_before_lhs import ATTRIBUTE
from hloopt.text import parse_module, print_module

TEXT = """HloModule m
ENTRY e {
  p = f32[64] parameter(0)
  q = f32[4] parameter(1)
  a = f32[64] negate(p)
  b = f32[4] slice(a), slice={[0:4]}
  c = f32[64] sine(p)
  d = f32[4] slice(c), slice={[0:4]}
  x = f32[4] negate(q)
  s = (f32[4], f32[4]) collective-permute-start(q), source_target_pairs={{0,1}}
  t = f32[4] collective-permute-done(s)
  y = f32[4] cosine(t)
  e = f32[4] add(d, x)
  f = f32[4] add(b, e)
  ROOT r = (f32[4], f32[4]) tuple(f, y)
}"""
MEMORY = "hlo-memory-scheduler"


def run(name: str, text: str = TEXT, **options: Any) -> tuple[Module, PassContext]:
    module, context = parse_module(text), PassContext(name)
    before = print_module(module)
    changed = create_pass(name, options).run(module, context)
    assert changed == (print_module(module) != before)
    return module, context


@pytest.mark.parametrize(
    ("options", "order", "reason"),
    [
        ({"algorithm": "list"}, "q p x s t y c d e a b f r", "list order"),
        ({"algorithm": "dfs"}, "p c d q x e a b f s t y r", "dfs order"),
        ({"algorithm": "post-order"}, "p a b c d q x e f s t y r", "post-order order"),
        ({"algorithm": "bfs"}, "p q a c x s b d t e y f r", "bfs order"),
        (
            {},
            "p c d q x e a b f s t y r",
            "dfs order (bytes needed: list 576, dfs 560, post-order 560)",
        ),
        (
            {"preset": "xla-gpu"},
            "p a b c d q s x e f t y r",
            "post-order order (bytes needed: list 576, dfs 592, post-order 560)",
        ),
    ],
)
def test_each_algorithm_has_its_order(options: dict[str, Any], order: str, reason: str) -> None:
    """With XLA:GPU's rules the start goes up and the done down."""
    module, context = run(MEMORY, **options)
    assert " ".join(i.name for i in module.entry.instructions) == order
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("applied", "r", f"scheduled in {reason}")
    ]
    assert context.statistics == {"computations reordered": 1}


def test_the_trivial_order_is_the_post_order() -> None:
    module, context = run("hlo-trivial-scheduler")
    order = [i.name for i in module.entry.instructions]
    assert " ".join(order) == "p a b c d q x e f s t y r"
    assert [r.reason for r in context.remarks] == ["scheduled in trivial order"]


@pytest.mark.parametrize("name", [MEMORY, "hlo-trivial-scheduler"])
def test_a_run_at_its_limit_schedules_nothing(name: str) -> None:
    for limit in (0, 1):
        module = parse_module(TEXT)
        context = PassContext(name, applications=Applications(limit=limit))
        assert create_pass(name).run(module, context) == bool(limit)
        assert module.is_scheduled == bool(limit)


def test_a_schedule_is_dropped_once() -> None:
    scheduled = TEXT.replace("HloModule m", "HloModule m, is_scheduled=true")
    module, context = run("hlo-descheduler", scheduled)
    assert not module.is_scheduled
    assert not create_pass("hlo-descheduler").run(module, context)
    module = parse_module(scheduled)
    limited = PassContext("hlo-descheduler", applications=Applications(limit=0))
    assert not create_pass("hlo-descheduler").run(module, limited)
    assert module.is_scheduled


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        (MEMORY, {"algorithm": "default", "pointer_size": 8, "preset": "xla-generic"}),
        (
            "scheduler-memory-fencing",
            {"threshold_bytes": -1, "slack_windows": 1, "memory_limit": None},
        ),
        (
            "legalize-scheduling-annotations",
            {
                "keep_sync_annotation": True,
                "keep_trivial_sync_annotation": True,
                "keep_start_annotation": True,
                "propagate_annotation": False,
                "check_start_done_annotation_consistency": True,
                "remove_loop_iteration_annotation_only": False,
                "run_verification": False,
                "deannotate_unsupported_groups": False,
                "check_gap_only": False,
                "check_non_mitigatable_gap_only": False,
                "skip_opt_barriers": False,
            },
        ),
    ],
)
def test_the_defaults_of_options_are_those_of_xla(name: str, defaults: dict[str, Any]) -> None:
    assert asdict(create_pass(name).options) == defaults


# -- fingerprints ----------------------------------------------------------------------------------


def fingerprint(text: str) -> str | None:
    module, _ = run("fingerprint-before-lhs", text)
    attributes = module.attributes.get("frontend_attributes", "{}").strip("{}")
    found = [pair for pair in attributes.split(",") if pair.startswith(ATTRIBUTE)]
    return found[0].partition("=")[2].strip('"') if found else None


def test_a_fingerprint_is_32_hexadecimal_digits() -> None:
    found = fingerprint(TEXT)
    assert found is not None
    assert len(found) == 32
    assert int(found, 16) >= 0


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("x", "renamed", True),
        ("sine(p)", 'sine(p), metadata={op_name="o"}', True),
        ("sine(p)", "cosine(p)", False),
        ("sine(p)", 'sine(p), backend_config={"a":1}', False),
    ],
)
def test_a_fingerprint_is_of_the_graph_and_the_configs(old: str, new: str, *, same: bool) -> None:
    text = TEXT.replace(f"{old} = ", f"{new} = ").replace(f"{old})", f"{new})")
    text = TEXT.replace(old, new) if "(" in old else text
    assert (fingerprint(text) == fingerprint(TEXT)) == same


def test_other_attributes_of_the_module_stay() -> None:
    text = TEXT.replace("HloModule m", 'HloModule m, frontend_attributes={other="1"}')
    module, _ = run("fingerprint-before-lhs", text)
    assert 'other="1"' in module.attributes["frontend_attributes"]
    assert ATTRIBUTE in module.attributes["frontend_attributes"]


def test_a_fingerprint_that_is_there_stays_and_a_scheduled_module_gets_none() -> None:
    own = TEXT.replace("HloModule m", f'HloModule m, frontend_attributes={{{ATTRIBUTE}="1"}}')
    assert fingerprint(own) == "1"
    assert fingerprint(TEXT.replace("HloModule m", "HloModule m, is_scheduled=true")) is None


def test_at_the_limit_there_is_no_fingerprint() -> None:
    module = parse_module(TEXT)
    context = PassContext("fingerprint-before-lhs", applications=Applications(limit=0))
    assert not create_pass("fingerprint-before-lhs").run(module, context)
    assert "frontend_attributes" not in module.attributes
