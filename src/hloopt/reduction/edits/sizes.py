"""Make what instructions work on small: dimensions, element types, the number of devices."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import ClassVar

from hloopt.diagnostics import HloError
from hloopt.ir.attributes.values import parse_int_lists, parse_replica_groups
from hloopt.ir.attributes.values.numbers import format_int_lists
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import Shape
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession
from hloopt.reduction.edits.substitutes import NotApplicable

_BUDGETS = (1, 10_000, 1_000_000)
"""Elements that the module may compute once its dimensions are smaller."""
_PLAIN = "f32"


class ShrinkDimensions:
    """Make dimensions smaller where nothing depends on their sizes, all together."""

    what: ClassVar[Count] = Count(
        "time all dimensions made smaller", "times all dimensions made smaller"
    )
    one_by_one: ClassVar[bool] = True

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Budgets of elements, the smallest first."""
        return (
            _BUDGETS
            if any(size > 1 for i in module.instructions() for size in _sizes(i.shape))
            else ()
        )

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Shrink by a plan for this budget."""
        from hloopt.shrink import plan_shrink

        budget = next(iter(parts))
        assert isinstance(budget, int)
        try:
            plan = plan_shrink([session.module], budget)
            if not plan.sizes:
                raise NotApplicable
            session.become(plan.apply(session.module))
        except HloError as error:
            raise NotApplicable from error


class PlainTypes:
    """Turn all floats of a type into f32."""

    what: ClassVar[Count] = Count("float type replaced by f32", "float types replaced by f32")
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """The other float types."""
        found = {
            leaf.type_name: None
            for instruction in module.instructions()
            for leaf in instruction.shape.leaves()
            if leaf.element_type is not None and leaf.element_type.is_floating
        }
        return [name for name in found if name != _PLAIN]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Change the types of all instructions."""
        from hloopt.ir.shapes.shape import tuple_shape

        def plain(shape: Shape) -> Shape:
            if shape.is_tuple:
                return tuple_shape(map(plain, shape.elements))
            return shape.with_element_type(_PLAIN) if shape.type_name in parts else shape

        for instruction in session.module.instructions():
            changed = plain(instruction.shape)
            if changed is not instruction.shape:
                instruction.set_shape(changed)


class FewerDevices:
    """Keep the first devices only, with what collectives do among them."""

    what: ClassVar[Count] = Count("time for less devices", "times for less devices")
    one_by_one: ClassVar[bool] = True

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Numbers of devices below that of the module, the smallest first."""
        most = max(module.replica_count, module.num_partitions)
        return [count for count in (1, 2, 4, 8, 16, 32, 64) if count < most]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Cut groups, pairs and the counts of the header."""
        count = next(iter(parts))
        assert isinstance(count, int)
        module = session.module
        for name in ("replica_count", "num_partitions"):
            if name in module.attributes and int(module.attributes[name]) > count:
                module.set_attribute(name, str(count))
        for instruction in module.instructions():
            groups = instruction.attribute("replica_groups")
            if groups is not None:
                kept = [
                    members
                    for group in parse_replica_groups(groups).lists()
                    if (members := [device for device in group if device < count])
                ]
                instruction.set_attribute("replica_groups", format_int_lists(kept))
            pairs = instruction.attribute("source_target_pairs")
            if pairs is not None:
                inside = [pair for pair in parse_int_lists(pairs) if max(pair) < count]
                instruction.set_attribute("source_target_pairs", format_int_lists(inside))


def _sizes(shape: Shape) -> Iterator[int]:
    for leaf in shape.leaves():
        yield from leaf.dimensions
