"""Sets of devices that agree, as a lattice."""

from __future__ import annotations

from hloopt.analysis.replication import ALL, NONE
from hloopt.analysis.replication.agreement import Lattice


def test_devices_stay_together_where_both_agreements_have_them_together() -> None:
    lattice = Lattice(8)
    a = lattice.partial([[(0, 1, 2, 3), (4, 5, 6, 7)]])
    b = lattice.partial([[(1, 2, 4), (3, 5), (6, 7)]])
    assert lattice.merge(a, b).sets == ((1, 2), (6, 7))
    assert lattice.merge(a, b) is lattice.merge(b, a)
    assert lattice.merge(ALL, a) is a
    assert lattice.merge(a, NONE) is NONE


def test_an_agreement_that_is_the_same_everywhere_goes_with_one_that_is_not() -> None:
    lattice = Lattice(4)
    everywhere = lattice.partial([[(0, 1), (2, 3)]])
    by_position = lattice.partial([[(0, 1, 2, 3)], [(1, 2, 3)]])
    both = lattice.merge(everywhere, by_position)
    assert both.holds([(2, 3)])
    assert not both.holds([(0, 1)])


def test_what_is_left_of_no_two_devices_is_nothing() -> None:
    lattice = Lattice(4)
    rows, columns = lattice.partial([[(0, 1), (2, 3)]]), lattice.partial([[(0, 2), (1, 3)]])
    assert lattice.merge(rows, columns) is NONE
    assert lattice.partial([[(0,), (1,)]]) is NONE


def test_a_set_of_all_devices_is_all() -> None:
    assert Lattice(2).partial([[(1, 0)], [(0, 1)]]) is ALL
    assert Lattice(3).partial([[(1, 0)]]) is not ALL
