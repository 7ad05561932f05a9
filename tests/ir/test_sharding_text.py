"""Shardings are written in the one form XLA keeps; what is expected here is what XLA prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values.replica_groups import IotaTile
from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.tile_devices import iota_of


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("{ devices=[2,1] 0, 1 }", "{devices=[2,1]0,1}"),
        (
            "{ last_tile_dim_replicate devices=[2,1,2]<=[4]}",
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        ),
        (
            "{devices=[2,2]<=[ 2 , 2 ]T( 1,0) last_tile_dims={ manual }  shard_as  1}",
            "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual} shard_as 1}",
        ),
        ("{device=0 maximal}", "{maximal device=0}"),
        (
            '{replicated metadata={op_name="a", op_type="b"}}',
            '{replicated metadata={op_type="b" op_name="a"}}',
        ),
        (
            '{manual shard_like 3 metadata={{op_name="a"},{}}}',
            '{manual shard_like 3 metadata={{op_name="a"}, {}}}',
        ),
        (
            "{ mesh[ 'a'=2 , \"b\"=4] , [ {'a' , ?} ] , replicated={ 'b' } }",
            "{mesh['a'=2,'b'=4], [{'a', ?}], replicated={'b'}}",
        ),
        ("{mesh[], replicated}", "{mesh[], replicated}"),
        ("{maximal_mesh[device_id=1]}", "{maximal_mesh[device_id=1]}"),
        ("{{replicated},/*x*/{manual}}", "{{replicated}, {manual}}"),
        ("{}", "{}"),
        ("{devices=[1,1,2,2]0,1,2,3 last_tile_dims={replicated, manual}}",
         "{devices=[1,1,2,2]0,2,1,3 last_tile_dims={manual, replicated}}"),
        ("{devices=[1,1,2,2,2]<=[8] last_tile_dims={replicated, manual, replicated}}",
         "{devices=[1,1,2,4]<=[2,2,2]T(1,0,2) last_tile_dims={manual, replicated}}"),
        ("{devices=[1,1,2,2]<=[4] last_tile_dims={manual, manual}}", "{manual}"),
        ("{devices=[2,1,1]<=[2] last_tile_dim_replicate}", "{devices=[2,1]<=[2]}"),
        ("{devices=[2,1,2]3,2,1,0 last_tile_dim_replicate}",
         "{devices=[2,1,2]2,3,0,1 last_tile_dim_replicate}"),
        ("{devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}",
         "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"),
        ("{devices=[2,1,6]<=[4,3]T(1,0) last_tile_dim_replicate}",
         "{devices=[2,1,6]0,1,3,4,6,9,2,5,7,8,10,11 last_tile_dim_replicate}"),
        ("{devices=[1,1,2]<=[2] last_tile_dims={maximal}}",
         "{devices=[1,1,2]<=[2] last_tile_dims={maximal}}"),
        ("{mesh['x'=2], [], unreduced={'x'}}", "{mesh['x'=2], unreduced}"),
        ("{mesh['x'=2][]}", "{mesh['x'=2], replicated}"),
        ("{mesh['x'=2,'y'=2], [{\"0\",'y',?},{}], manual={}}",
         "{mesh['x'=2,'y'=2], [{'x', 'y', ?}, {}]}"),
        ("{mesh['x'=2,'y'=2,'z'=2], [{'x'}], manual={'y'}, replicated={'z'}}",
         "{mesh['x'=2,'y'=2,'z'=2], [{'x'}], replicated={'z'}, manual={'y'}}"),
        ("{mesh['x'=2,'y'=2], device_ids=([2,2]T(0,1)), [{'x'}]}",
         "{mesh['x'=2,'y'=2], [{'x'}]}"),
        ("{mesh['x'=2,'y'=2], [{'x'}], unreduced=max{'y'}}",
         "{mesh['x'=2,'y'=2], [{'x'}], unreduced=max{'y'}}"),
        ("{mesh['x'=2,'y'=2], [{'x'}], unreduced{'y'}}",
         "{mesh['x'=2,'y'=2], [{'x'}], unreduced={'y'}}"),
    ],
)  # fmt: skip
def test_one_form_of_many(text: str, printed: str) -> None:
    assert canonical_sharding(text) == printed
    assert canonical_sharding(printed) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{mesh['x'=2], [{'z'}]}", "has no axis 'z'"),
        ("{mesh['x'=2], [{'x'}, {'x'}]}", "uses 'x' twice"),
        ("{mesh['x'=8], [{'x':(1)2}, {'x':(1)4}]}", "twice"),
        ("{mesh['x'=4], [{'x':(1)2,'x':(2)2}]}", "are one part"),
        ("{mesh['x'=4], [{'x':(1)3}]}", "is not a part of the axis"),
        ("{mesh['x'=2,'x'=2], [{'x'}]}", "has the axis 'x' twice"),
        ("{mesh['x'=2], [{}], unreduced=avg{'x'}}", "unknown reduction 'avg'"),
        ("{mesh['x'=2,'y'=2], [], manual={'y','x'}}", "another order"),
        ("{devices=[2,2]<=[4] last_tile_dims={manual} last_tile_dim_replicate}",
         "has last_tile_dims and"),
    ],
)  # fmt: skip
def test_what_is_no_sharding_is_explained(text: str, message: str) -> None:
    with pytest.raises(HloSyntaxError, match=message):
        canonical_sharding(text)


@given(st.permutations(range(3)), st.tuples(*[st.integers(2, 4)] * 3))
def test_a_transposed_count_is_found_again(permutation: list[int], sizes: tuple[int, ...]) -> None:
    devices = IotaTile((), sizes, tuple(permutation)).devices()
    found = iota_of(devices)
    assert found is not None
    assert found.devices() == devices


def test_what_is_no_transposed_count_is_listed() -> None:
    assert iota_of([0, 1, 3, 2]) is None
    assert iota_of([1, 2, 3, 4]) is None
    assert iota_of([0]) == IotaTile((1,), (1,), (0,))


@pytest.mark.parametrize("subgroups", ["", " last_tile_dim_replicate", " last_tile_dims={manual}"])
@pytest.mark.parametrize(
    "tile",
    [
        *("[2,9223372036854775808]0,1", "[18446744073709551615,18446744073709551615]0"),
        *("[9223372036854775808,9223372036854775808,1]1,0", "[1,9223372036854775809]0"),
    ],
)
def test_tiles_that_overflow_are_kept_as_they_are_written(tile: str, subgroups: str) -> None:
    """XLA prints them with negative sizes, which nobody reads."""
    text = f"{{devices={tile}{subgroups}}}"
    assert canonical_sharding(text) == text


@pytest.mark.parametrize(
    "mesh",
    [
        "mesh['a'=9223372036854775808], [{'a'}]",
        "mesh['a'=18446744073709551615,'b'=2], [{'a'}]",
        "mesh['a'=2], device_ids=(9223372036854775808,1), [{'a'}]",
    ],
)
def test_numbers_of_meshes_that_overflow_are_refused(mesh: str) -> None:
    with pytest.raises(HloSyntaxError, match="does not fit into 63 bits"):
        canonical_sharding(f"{{{mesh}}}")
