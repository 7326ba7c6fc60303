"""Sees which formulations and rewrites of the CPU a program takes, and lowers it without them."""

from __future__ import annotations

from typing import Any

import pytest

import xlamini
from xlamini.primitives.windows.cpu.choice import Formulation, Rewrite


class Spy:
    """The formulations or rewrites in their places, with a list of those used; `without()` takes them away.

    A place is an object and the name of its attribute.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *places: tuple[Any, str]):
        self.monkeypatch, self.places, self.used = monkeypatch, places, []
        for place, name in places:
            monkeypatch.setattr(place, name, tuple(map(self._seen, getattr(place, name))))

    def _seen(self, form: Formulation | Rewrite) -> Formulation | Rewrite:
        def compute(*operands: Any, **params: Any) -> Any:
            self.used.append(getattr(form.compute, "__name__", "fold"))
            return form.compute(*operands, **params)

        return form._replace(compute=compute)

    def without(self) -> None:
        xlamini.clear_caches()
        for place, name in self.places:
            self.monkeypatch.setattr(place, name, ())
