"""The host of a running program: feeds infeeds, and sends data."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.inputs import Inputs, made_up, may_steer
from hloopt.interpreter.roles import Role
from hloopt.interpreter.special_values import with_special
from hloopt.interpreter.values import Array, Value, make_value
from hloopt.ir.shapes.shape import Shape

_MAY_STEER = Role(steers=True)


class Host(NamedTuple):
    """Feeds devices with made-up values: as inputs are, a function of the seed alone."""

    inputs: Inputs
    seed: int

    def feed(self, device: Device, queue: str, number: int, shape: Shape) -> Value:
        """The values of the `number`-th request of a device to a queue.

        Integer scalars are the same on all devices: they may steer loops that devices meet in.
        """
        leaves = iter(range(len(shape.leaves())))

        def make(leaf: Shape) -> Array:
            whose = -1 if may_steer(leaf) else device.number
            key = [self.seed, next(leaves), crc32(queue.encode()), number, whose + 1]
            made = made_up(leaf, self.inputs, key)
            special = self.inputs.special
            return made if special is None else with_special(made, leaf, special, key, _MAY_STEER)

        return make_value(shape, make)
