"""Metadata for XLA: frontend attributes of the operations that compute a value, which name no meaning of their own.

An identity says which attributes the operation before it gets. As an equation it is part of the program's structure, so
that programs which differ in their metadata are compiled apart. The attributes of a `with` block are part of the trace
context, so that functions which are traced inside it get them too.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from typing import Any, Final

from xlamini.core import Builder, Equation, Var, aval_of, tree_map
from xlamini.core.flags.user_context import make_user_context
from xlamini.core.tracing.state import state
from xlamini.primitives.base.dtype_kinds import ANY, kind_of
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.placement.identity import Copy

Attributes = tuple[tuple[str, str], ...]

metadata_around: Final = make_user_context(())
"""The attributes of the `with` blocks around a function that is about to be traced."""


class XlaMetadataValue(Copy):
    """Nothing is computed; tangents and cotangents are marked too."""

    def lower(self, ctx: Any, x: Any, *, xla_metadata_kvs: Attributes) -> Any:
        ctx.add_frontend_attributes(x, xla_metadata_kvs)
        return x


@elementwise(family=XlaMetadataValue, accepts=ANY, flops=0)
def xla_metadata_value_p(x: Any, *, xla_metadata_kvs: Attributes) -> Any:
    """An identity whose operand's operation has these frontend attributes."""


xla_metadata_value_p.name = "xla_metadata_value"


@xla_metadata_value_p.transposed
def _(ct: Any, x: Any, *, xla_metadata_kvs: Attributes) -> Any:
    return (xla_metadata_value_p.bind(ct, xla_metadata_kvs=xla_metadata_kvs),)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Frontend attributes for XLA, by name: of the operations that compute the leaves of `x`, or of a `with` block.

    Without `x` it is a context manager and a decorator: every operation traced inside gets the attributes, also those
    of loops and of jitted functions that are called there. Values are strings, numbers or bools.

    >>> def f(x):
    ...     with set_xla_metadata(group=1):
    ...         x = xlamini.numpy.negative(x)
    ...     return set_xla_metadata(x + 1, last=True)
    >>> text = xlamini.jit(f).lower(1.0).as_text()
    >>> [line.partition("{")[2] for line in text.splitlines() if "frontend" in line]
    ['mhlo.frontend_attributes = {group = "1"}} : tensor<f32>', \
'mhlo.frontend_attributes = {last = "true"}} : tensor<f32>']
    """
    kvs = as_attributes("set_xla_metadata", kwargs)
    if x is None:
        return _Block(kvs)
    return tree_map(lambda leaf: _mark(leaf, kvs), x)


def as_attributes(what: str, values: dict[str, Any]) -> Attributes:
    """Attributes as text, in the order of their names; TypeError for what is no string, number or bool."""
    return tuple(sorted((name, _text(what, name, value)) for name, value in values.items()))


def _text(what: str, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise TypeError(f"{what}: {name} must be a string, a number or a bool, got {value!r}")
    return str(value)


def _mark(x: Any, kvs: Attributes) -> Any:
    if state.builder is None or kind_of(aval_of(x).dtype) not in ANY:
        return x
    return xla_metadata_value_p.bind(x, xla_metadata_kvs=kvs)


class _Block(ContextDecorator):
    """The context manager, and the decorator, of attributes."""

    def __init__(self, kvs: Attributes):
        self._kvs = kvs
        self._open: AbstractContextManager[None]

    def _recreate_cm(self) -> _Block:
        return _Block(self._kvs)

    def __enter__(self) -> None:
        self._open = _marked(self._kvs)
        self._open.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def __call__(self, fun: Callable[..., Any]) -> Any:
        decorated = super().__call__(fun)
        for stage in ("trace", "lower", "eval_shape"):  # of a jitted function
            if hasattr(fun, stage):
                setattr(decorated, stage, super().__call__(getattr(fun, stage)))
        return decorated


@contextmanager
def _marked(kvs: Attributes) -> Iterator[None]:
    builder = state.builder
    start = 0 if builder is None else len(builder.equations)
    with metadata_around(tuple(sorted({**dict(metadata_around.value), **dict(kvs)}.items()))):
        yield
    if builder is not None and kvs:
        _mark_equations(builder, start, kvs)


def mark_all(builder: Builder, kvs: Attributes) -> None:
    """Give the attributes to all equations of a trace."""
    _mark_equations(builder, 0, kvs)


def _mark_equations(builder: Builder, start: int, kvs: Attributes) -> None:
    """Insert an identity behind each result of the equations from `start` on, unless there is one with these values."""
    inside = builder.equations[start:]
    marked = {e.invars[0] for e in inside if _is_mark(e) and set(kvs) <= set(e.params["xla_metadata_kvs"])}
    del builder.equations[start:]
    for eqn in inside:
        eqn.id = len(builder.equations)
        builder.equations.append(eqn)
        if _is_mark(eqn):
            continue
        for i, var in enumerate(eqn.outvars):
            if kind_of(var.aval.dtype) in ANY and var not in marked:
                raw = Var(var.aval)
                eqn.outvars = [*eqn.outvars[:i], raw, *eqn.outvars[i + 1 :]]
                builder.equations.append(_identity(raw, var, kvs, eqn, len(builder.equations)))


def _is_mark(eqn: Equation) -> bool:
    return eqn.primitive is xla_metadata_value_p


def _identity(raw: Var, var: Var, kvs: Attributes, eqn: Equation, number: int) -> Equation:
    params = {"xla_metadata_kvs": kvs}
    return Equation(xla_metadata_value_p, [raw], [var], params, frozenset(), eqn.provenance, number)
