"""Sees which forms of the CPU a program's convolutions and pools take, and lowers it without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.primitives.forms.cpu.windows.choice import Choice


class Spy:
    """The choices in their places, with a list of those used; `without()` takes them away.

    A place is an object and the name of its attribute.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *places: tuple[Any, str]):
        self.monkeypatch, self.places, self.used = monkeypatch, places, []
        for place, name in places:
            monkeypatch.setattr(place, name, tuple(map(self._seen, getattr(place, name))))

    def _seen(self, choice: Choice) -> Choice:
        def compute(*operands: Any, **params: Any) -> Any:
            self.used.append(getattr(choice.compute, "func", choice.compute).__name__)
            return choice.compute(*operands, **params)

        return choice._replace(compute=compute)

    def without(self) -> None:
        xlamini.clear_caches()
        for place, name in self.places:
            self.monkeypatch.setattr(place, name, ())


def in_order(shape: Sequence[int], spec: Sequence[int]) -> list[int]:
    """A shape given as batch, features, space in the order of these dimension numbers."""
    return [shape[spec.index(d)] for d in range(len(spec))]


def with_and_without(spy: Spy, x: Any, kernel: Any, specs: Any, params: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """A convolution and its gradients by the forms, which are then taken away, beside those by XLA's own operation.

    The gradients are for a cotangent that differs everywhere.
    """

    def both(x: Any, kernel: Any) -> list[Any]:
        numbers = lax.ConvDimensionNumbers(*specs)
        out, back = xlamini.vjp(
            lambda *xs: lax.conv_general_dilated(*xs, dimension_numbers=numbers, **params), x, kernel
        )
        return [out, *back(jnp.cos(jnp.arange(out.size)).reshape(out.shape).astype(out.dtype))]

    ours = xlamini.jit(both)(x, kernel)
    spy.without()
    theirs = xlamini.jit(lambda x, kernel: both(x, kernel))(x, kernel)
    return zip(ours, theirs, strict=True)
