"""Loads and stores with a mask, and atomic updates, of a GPU's kernel.

ElementPlaces that the mask leaves out are neither read nor written, so their indices may be anywhere.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xlamini.core import Equation, ShapedArray
from xlamini.core.program.ref_parts import shape_of
from xlamini.transforms.pallas.check.accesses import load_elements, located, store_elements
from xlamini.transforms.pallas.check.machine import Machine
from xlamini.transforms.pallas.check.memory import CheckedBuffer
from xlamini.transforms.pallas.check.parts import ElementPlaces, points
from xlamini.transforms.pallas.check.twins import host, on_both

COMBINATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "xchg": lambda old, new: new,
}  # fmt: skip
"""By the name of an atomic operation: the new element from the old one and the value."""


class MaskedPart:
    """The part of a ref that an equation with a mask is on: its `shape`, the `mask`, and the `values` given."""

    machine: Machine
    values: Any
    mask: np.ndarray
    shape: tuple[int, ...]

    def __init__(self, machine: Machine, eqn: Equation, inputs: Sequence[Any], verb: str):
        access, (ref, *operands) = eqn.params["view"], inputs
        self.machine, self.values = machine, access.parted(operands)[0]
        self.ref: CheckedBuffer = ref
        _, mask, indices = access.parted(operands)
        masks = [] if mask is None else [mask]
        find = partial(self._find, access, len(masks))
        self.where: ElementPlaces = located(machine, ref, [*masks, *indices], verb, find)

    def _find(self, access: Any, masks: int, operands: Sequence[Any]) -> ElementPlaces:
        values = [host(x) for x in operands[masks:]]
        part = access.view.part(self.ref.shape, [ShapedArray(x.shape, x.dtype) for x in values])
        self.shape = shape_of(part)
        self.mask = np.broadcast_to(host(operands[0]) if masks else np.True_, self.shape)
        return points(part, self.ref.shape, values, self.mask)

    def chosen(self, value: Any) -> Any:
        """The elements of a value for the part that the mask leaves, in a row."""
        return on_both(lambda xs: [np.broadcast_to(host(xs[0]), self.shape)[self.mask]], [value])[0]

    def spread(self, found: Any, other: Any) -> Any:
        """The value for the part, from the elements in a row; `other` where the mask leaves out."""

        def value(xs: Sequence[Any]) -> list[np.ndarray]:
            out = np.array(np.broadcast_to(host(xs[1]), self.shape)).astype(host(xs[0]).dtype)
            out[self.mask] = host(xs[0])
            return [out]

        return on_both(value, [found, other])[0]


def masked_load(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """The part where the mask is true, elsewhere another value."""
    part = MaskedPart(machine, eqn, inputs, "reads")
    other = part.values[0] if part.values else np.zeros((), eqn.outvars[0].aval.dtype)
    return [part.spread(load_elements(machine, part.ref, part.where), other)]


def masked_store(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Writes the part where the mask is true."""
    part = MaskedPart(machine, eqn, inputs, "writes")
    store_elements(machine, part.ref, part.where, part.chosen(part.values[0]))
    return []


def atomic(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Combines elements with values, one after the other; returns those before."""
    combine = COMBINATIONS[eqn.params["view"].operation]
    return _updated(machine, eqn, inputs, lambda old, value: combine(old, value))


def compare_and_swap(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Writes a value to an element that is the expected one; returns the element before."""
    return _updated(machine, eqn, inputs, lambda old, expected, value: value if old == expected else old)


def _updated(machine: Machine, eqn: Equation, inputs: Sequence[Any], new: Callable[..., Any]) -> Sequence[Any]:
    part = MaskedPart(machine, eqn, inputs, "writes")
    columns = [part.chosen(x) for x in part.values]
    index = [np.broadcast_to(i, part.where.shape) for i in part.where.index if i is not ...]
    before = []
    for k in range(part.where.shape[0]):
        element = ElementPlaces((..., *(int(i[k]) for i in index)), ())
        values = [on_both(lambda xs, k=k: [host(xs[0])[k]], [column])[0] for column in columns]
        old = load_elements(machine, part.ref, element, is_atomic=True)
        store_elements(machine, part.ref, element, on_both(lambda xs: [new(*map(host, xs))], [old, *values])[0], True)
        before.append(old)
    empty = np.zeros(0, eqn.outvars[0].aval.dtype)
    row = on_both(lambda xs: [np.stack(list(map(host, xs)))], before)[0] if before else empty
    return [part.spread(row, np.zeros((), eqn.outvars[0].aval.dtype))]
