"""Params of JAX that are Python objects: each carries the params of xlamini's that it stands for.

JAX has functions of its own form in these places. What binds an equation again hands them back, and a library that
calls one gets an error that says so.
"""
from __future__ import annotations

from typing import Any, NoReturn

from xlamini.as_jax.overlay.refusals import refuse
from xlamini.core.program.avals import Params
from xlamini.core.program.jaxpr import Jaxpr
from xlamini.core.program.primitive import Primitive


class Carrier:
    """A rule or a function in a param of JAX's.

    `stands_for`: a primitive that JAX does not have, and the program that the equation has in its place.
    """

    params: Params
    stands_for: tuple[Primitive, Jaxpr] | None
    what: str

    def __init__(self, what: str, params: Params, stands_for: tuple[Primitive, Jaxpr] | None = None):
        self.what, self.params, self.stands_for = what, params, stands_for
        self.__name__ = what

    def call_wrapped(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"a call of {self.what}", "bind the equation again, or differentiate what evaluates it")

    __call__ = call_wrapped

    def __repr__(self) -> str:
        return self.what


class CarryingTuple(tuple):
    """A tuple that carries params."""

    params: Params

    @classmethod
    def of(cls, params: Params) -> CarryingTuple:
        made = cls()
        made.params = params
        return made
