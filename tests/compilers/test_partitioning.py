"""Programs as the partitioner of jaxlib is given them."""

from __future__ import annotations

from tests.sharding.sharding_pairs import pair

from hloopt.compilers.partitioning import with_whole_states
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def test_what_a_loop_hands_on_is_copied_with_its_sharding() -> None:
    program, _ = pair("looped")
    text = str(program)
    whole = with_whole_states(program)
    assert str(program) == text
    assert not verify_module(whole)
    body = whole.computations["body"]
    assert [operand.name for operand in body.root.operands] == ["k", "d", "copy"]
    assert body["copy"].operands == [body["w"]]
    assert body["copy"].attributes == {"sharding": "{devices=[4,1]<=[4]}"}


def test_other_loops_stay_as_they_are() -> None:
    program, _ = pair("looped")
    line = next(line for line in str(program).splitlines() if " while(" in line)
    bare = str(program).replace(line, line.partition(", sharding=")[0])
    exchanged = str(program).replace("tuple(%k, %d, %w)", "tuple(%k, %w, %x)")
    for text in (bare, exchanged):
        assert str(with_whole_states(parse_module(text))) == str(parse_module(text))
