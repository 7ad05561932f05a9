"""The chain of passes of a module, one operation on its way through it, and times."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dumps.dump_maker import COMBINED, END, PASSES, STEP, WITHOUT_COPY, write_dump

from hloopt.diagnostics import HloError
from hloopt.dumps.chain import Chain, Effect, choose
from hloopt.dumps.folder import scan
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.logs import read_pass_times
from hloopt.dumps.tracking import Event, track

FUSED = """\
HloModule jit_step, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

%fused (a: f32[8,8], b: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  %b = f32[8,8]{1,0} parameter(1)
  ROOT %add.1 = f32[8,8]{1,0} add(%a, %b)
}

ENTRY %main (p: f32[8,8], q: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0), metadata={op_name="p"}
  %q = f32[8,8]{1,0} parameter(1), metadata={op_name="q"}
  %dot.1 = f32[8,8]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/dot"}
  %all-reduce.7 = f32[8,8]{1,0} all-reduce(%dot.1), channel_id=1, replica_groups={{0,1,2,3}},
    use_global_device_ids=true, to_apply=%sum, metadata={op_name="jit(step)/psum"}
  ROOT %add_fusion = f32[8,8]{1,0} fusion(%all-reduce.7, %p), kind=kLoop, calls=%fused
}
"""
MORE = (*PASSES, ("0003.fusion.after_fusion.before_dce", FUSED))


def chain_of(folder: Path, name: str = "jit_step") -> Chain:
    return Chain.of(choose(scan([str(folder)]).compilations, name), Gatherer(1, None))


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    end = FUSED.replace("num_partitions", "is_scheduled=true, num_partitions")
    write_dump(tmp_path, passes=MORE, end=end)
    return chain_of(tmp_path)


def test_what_each_pass_changed(chain: Chain) -> None:
    assert [(step.maker, step.effect) for step in chain.steps] == [
        ("before_optimizations", Effect.FIRST),
        ("simplification: before its first pass", Effect.NOTHING),
        ("simplification: algsimp", Effect.PROGRAM),
        ("collectives: all-reduce-combiner", Effect.TEXT),
        ("fusion: fusion", Effect.PROGRAM),
        ("cpu_after_optimizations", Effect.PROGRAM),
    ]
    assert [step.facts.instructions for step in chain.steps if step.facts] == [9, 9, 8, 8, 11, 11]
    assert [bool(step.facts and step.facts.peak) for step in chain.steps] == [False] * 5 + [True]


def test_a_step_that_cannot_be_read(tmp_path: Path) -> None:
    broken = PASSES[1][0], WITHOUT_COPY.replace("dot(", "dott(")
    write_dump(tmp_path, passes=(PASSES[0], broken, PASSES[2]))
    effects = [step.effect for step in chain_of(tmp_path).steps]
    assert effects[1:4] == [Effect.NOTHING, Effect.UNKNOWN, Effect.UNKNOWN]


def test_a_stage_without_a_place_in_time_is_left_out_beside_dumps_of_passes(tmp_path: Path) -> None:
    write_dump(tmp_path, passes=(*PASSES, ("after_spmd_partitioner", STEP)))
    assert len(chain_of(tmp_path).steps) == 5
    for path in tmp_path.glob("*.000?.*"):
        path.unlink()
    assert [step.maker for step in chain_of(tmp_path).steps] == [
        *("before_optimizations", "after_spmd_partitioner", "cpu_after_optimizations")
    ]


@pytest.mark.parametrize("name", ["algsimp", "simplification: algsimp", "1", "0001", "algsimp#1"])
def test_names_of_a_step(name: str, chain: Chain) -> None:
    assert chain.find(name) is chain.steps[2]


def test_a_pass_that_ran_twice(tmp_path: Path) -> None:
    again = ("0003.simplification.after_algsimp.before_dce", COMBINED)
    third = ("0004.simplification.after_algsimp.before_dce", END)
    write_dump(tmp_path, passes=(*PASSES, again))
    chain = chain_of(tmp_path)
    assert chain.find("algsimp") is chain.steps[2]  # the other one changed nothing
    assert chain.find("algsimp#2") is chain.steps[4]
    write_dump(tmp_path, passes=(*PASSES, again, third))
    with pytest.raises(HloError, match="there are 3 dumps of 'algsimp'") as error:
        chain_of(tmp_path).find("algsimp")
    assert error.value.help == "name one: algsimp#1, algsimp#2, algsimp#3"
    with pytest.raises(HloError, match="there are 3 dumps of 'algsimp'"):
        chain_of(tmp_path).find("algsimp#4")


def test_a_pass_that_was_not_dumped(chain: Chain) -> None:
    with pytest.raises(HloError, match="no dump is of the pass 'algsim'") as error:
        chain.find("algsim")
    assert error.value.help == "did you mean 'algsimp'?"


def test_names_of_a_module(tmp_path: Path) -> None:
    for host in range(2):
        write_dump(tmp_path / f"process-{host}", id=3)
        write_dump(tmp_path / f"process-{host}", id=12, name="jit_eval")
        write_dump(tmp_path / f"process-{host}", id=13, name="jit_eval")
    found = scan([str(tmp_path)]).compilations
    for name in ("jit_step", "3", "0003", "module_0003.jit_step", "3.jit_step"):
        assert (choose(found, name).host, choose(found, name).id) == ("process-0", 3)
    with pytest.raises(HloError, match="'jit_eval' was compiled 2 times") as error:
        choose(found, "jit_eval")
    assert error.value.help == ("name one by its number: module_12.jit_eval, module_13.jit_eval")
    assert choose(found, "module_13.jit_eval").id == 13
    with pytest.raises(HloError, match="there is no module 'jit_stop'") as error:
        choose(found, "jit_stop")
    assert error.value.help == "did you mean 'jit_step'?"


def test_modules_of_one_number_are_told_apart_by_their_times(tmp_path: Path) -> None:
    for number, stamp in enumerate(("1732700000", "1732700099")):
        path = tmp_path / f"{stamp}.module_0001.jit_f.before_optimizations.txt"
        path.write_text(STEP.replace("8,8", f"{number + 2},{number + 2}"), encoding="utf-8")
    found = scan([str(tmp_path)]).compilations
    with pytest.raises(HloError, match="compiled 2 times") as error:
        choose(found, "jit_f")
    name = str(error.value.help).rpartition(", ")[2]
    assert choose(found, name).timestamp == "1732700099"


def test_the_first_dump_has_none_before_it(tmp_path: Path) -> None:
    write_dump(tmp_path)
    (tmp_path / "module_0003.jit_step.before_optimizations.txt").unlink()
    with pytest.raises(HloError, match="no dump is of the pass '0'"):
        chain_of(tmp_path).find("0")


# -- tracking -------------------------------------------------------------------------------------


def story(events: list[Event]) -> list[tuple[str, list[str], list[str]]]:
    return [(e.step.stage.after, e.verbs, [sight.name for sight in e.sights]) for e in events]


def test_an_instruction_on_its_way(chain: Chain) -> None:
    assert story(track(chain, "%all-reduce.1")) == [
        ("before_optimizations", ["there"], ["all-reduce.1"]),
        ("all-reduce-combiner", ["renamed"], ["all-reduce.7"]),
    ]
    assert story(track(chain, "%add.1")) == [
        ("before_optimizations", ["there"], ["add.1"]),
        ("fusion", ["fused"], ["add.1"]),
    ]
    assert story(track(chain, "%add_fusion")) == [("fusion", ["made"], ["add_fusion"])]


def test_what_was_removed_and_what_is_in_its_place(chain: Chain) -> None:
    *_, last = track(chain, "%copy.1")
    assert (last.verbs, last.sights, last.replaced_by) == (["removed"], [], ["%dot.1"])


def test_an_op_name_is_all_that_have_it(chain: Chain) -> None:
    assert story(track(chain, "jit(step)/psum")) == [
        ("before_optimizations", ["there"], ["all-reduce.1"]),
        ("all-reduce-combiner", ["renamed"], ["all-reduce.7"]),
    ]


def test_what_no_dump_has(chain: Chain) -> None:
    with pytest.raises(HloError, match=r"no dump has %all-reduce\.2") as error:
        track(chain, "%all-reduce.2")
    assert "did you mean '%all-reduce." in str(error.value.help)
    with pytest.raises(HloError, match="no dump has jit"):
        track(chain, "jit(step)/dod")


# -- times ----------------------------------------------------------------------------------------

LOG = """\
I1127 15:43:57.1  11 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: outer one
I1127 15:43:57.2  11 hlo_pass_pipeline.cc:181]   HLO pass inner one
I1127 15:43:57.3  11 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: inner one
I1127 15:43:57.4  11 hlo_pass_pipeline.cc:181]     HLO pass dce
I1127 15:43:57.4  12 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_g: other
I1127 15:43:57.4  12 hlo_pass_pipeline.cc:181]   HLO pass dce
I1127 15:43:57.5  11 hlo_pass_pipeline.cc:176] HLO pass: dce time: 26 us (26 us) (cumulative: 2 s)
I1127 15:43:57.5  11 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: inner one
I1127 15:43:57.5  11 hlo_pass_pipeline.cc:181]     HLO pass dce
some other line
I1127 15:43:57.5  12 hlo_pass_pipeline.cc:176] HLO pass: dce time: 1.50 s (1500000 us)
I1127 15:43:57.5  11 hlo_pass_pipeline.cc:176] HLO pass: dce time: 4 us (4 us) (cumulative: 2 s)
I1127 15:43:57.6  11 hlo_pass_pipeline.cc:176] HLO pass: inner one time: 2.32 ms (2325 us)
I1127 15:43:57.6  11 hlo_pass_pipeline.cc:181]   HLO pass spmd
I1127 15:43:57.6  11 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: cleanup
I1127 15:43:57.6  11 hlo_pass_pipeline.cc:181]     HLO pass cse
I1127 15:43:57.6  11 hlo_pass_pipeline.cc:176] HLO pass: cse time: 7 us (7 us)
I1127 15:43:57.6  11 hlo_pass_pipeline.cc:176] HLO pass: spmd time: 10 us (10 us)
I1127 15:43:57.7  11 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: next
I1127 15:43:57.8  11 hlo_pass_pipeline.cc:176] HLO pass: dce time: 9 us: its begin is not here
"""


def test_times_of_passes(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    found = read_pass_times(str(tmp_path / "log"))
    assert {key: (time.runs, round(time.seconds, 9)) for key, time in found.items()} == {
        ("jit_f", "inner_one", "dce"): (2, 30e-6),
        ("jit_f", "outer_one", "inner_one"): (1, 2.32e-3),
        ("jit_f", "cleanup", "cse"): (1, 7e-6),
        ("jit_f", "outer_one", "spmd"): (1, 10e-6),
        ("jit_g", "other", "dce"): (1, 1.5),
    }


def test_a_log_without_times(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("I1127 nothing\n")
    with pytest.raises(HloError, match="has no times of passes"):
        read_pass_times(str(tmp_path / "log"))
    with pytest.raises(HloError, match="No such file"):
        read_pass_times(str(tmp_path / "missing"))
