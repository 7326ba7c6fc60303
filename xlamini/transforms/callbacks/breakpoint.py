"""debug.breakpoint: a prompt over the Python frames of a traced function, with the values of a run.

The frames are those of the call while the function is traced. Their tracers are operands of a callback; when the
program runs, it puts the values in their places and starts the prompt.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Effects,
    Factors,
    Params,
    ShapedArray,
    Tracer,
    Values,
    apart,
    flatten,
    flatten_from_user,
    unflatten,
)
from xlamini.core.errors.frames import is_hidden, user_frame
from xlamini.core.program.effects import no_effects
from xlamini.core.pytree import default_registry, structure
from xlamini.core.sharding.facet import Sharding
from xlamini.core.tracing.tracer import build, is_usable
from xlamini.staging import LeafNames, checked_avals
from xlamini.transforms.callbacks.debug import DebugCallback
from xlamini.transforms.callbacks.debugger import Frame, Prompt
from xlamini.transforms.callbacks.host_function import HostFunction


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop when the program gets here, at a prompt like pdb's in which the variables have their values.

    Under vmap it stops for each example; under grad and jvp in the forward pass, at the primal values. `u` and `d` go
    to the callers' frames and back, `l` lists the source, `c` goes on; `help` lists all commands. An expression alone
    is printed; it may call functions of arrays.

    Args:
      backend: "cli", or None for the default, which is the same.
      filter_frames: leave out the frames of the library.
      num_frames: how many frames to keep, from the innermost; None keeps all.
      ordered: whether it runs after all earlier ordered effects; see io_callback.
      token: an array, or a pytree of arrays, which is returned; the breakpoint runs when they have been computed, and
        is removed from the program if the result is not used.
      **kwargs: `stdin` and `stdout`, text streams for the prompt in place of the process's own.

    Raises:
      CallbackError: the command was `q`, or the input has ended. The program stops.

    >>> import io
    >>> def root(x):
    ...     y = xlamini.numpy.sqrt(x)
    ...     breakpoint(stdin=io.StringIO("p y + 1\\nc\\n"))
    ...     return y
    >>> xlamini.jit(root)(4.0)
    Entering xdb:
    (xdb) Array(3., dtype=float32)
    (xdb) Array(2., dtype=float32, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: backend is {backend!r}, but the only one is 'cli', a terminal's prompt")
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"debug.breakpoint: num_frames is {num_frames}; keep at least 1")
    unknown = kwargs.keys() - {"stdin", "stdout"}
    if unknown:
        raise TypeError(f"debug.breakpoint: unexpected {', '.join(sorted(unknown))}; it takes stdin and stdout")
    if ordered and token is not None:
        raise ValueError("debug.breakpoint: ordered and token exclude each other; a token is an order of its own")
    leaves, tree = flatten_from_user(token)
    checked_avals(leaves, LeafNames("token", tree), "debug.breakpoint")
    frames = list(_frames(filter_frames))[:num_frames]
    return unflatten(tree, _bound(Stop(frames, len(leaves), kwargs), leaves, bool(ordered)))


def _bound(stop: Stop, token: Values, ordered: bool) -> list[Any]:
    operands = (*token, *stop.tracers)
    function = HostFunction(stop, structure((operands, {})))
    params = {"ordered": ordered, "partitioned": False, "num_token": len(token)}
    return breakpoint_p.bind(*operands, callback=function, result_avals=(), mapped=(), **params)


def _frames(filter_frames: bool) -> Iterator[FrameType]:
    """The frames around the call, from the innermost."""
    frame = user_frame(2)
    while frame is not None:
        if not (filter_frames and is_hidden(frame)):
            yield frame
        frame = frame.f_back


class TracerIndex(NamedTuple):
    """The place of a tracer in a variable: its index among those of all frames."""

    index: int


class Stop:
    """The frames of a breakpoint, as a function of the values of their tracers, which starts the prompt."""

    num_token: int
    streams: Mapping[str, Any]

    __name__ = "the prompt"

    def __init__(self, frames: Sequence[FrameType], num_token: int, streams: Mapping[str, Any]):
        self.tracers: list[Any] = []
        self.num_token, self.streams = num_token, streams
        self.frames: list[Frame] = [
            Frame(f.f_code, f.f_lineno, f.f_globals, {name: self._noted(x) for name, x in f.f_locals.items()})
            for f in frames
        ]

    def _noted(self, value: Any) -> Any:
        """A variable; with `TracerIndex` in the places of its tracers if it has any that are alive."""
        try:
            found = list(_leaves(value, ()))
        except Exception:  # no order, no end, or a broken class: such a container is shown as it is
            return value
        if not any(map(_is_open, found)):
            return value
        leaves, tree = flatten(value)
        return _TracedVariable(tree, [self._place(x) if _is_open(x) else x for x in leaves])

    def _place(self, tracer: Any) -> TracerIndex:
        self.tracers.append(tracer)
        return TracerIndex(len(self.tracers) - 1)

    def __call__(self, *operands: Any) -> None:
        values = operands[self.num_token :]
        frames = [
            frame._replace(variables={name: _filled(x, values) for name, x in frame.variables.items()})
            for frame in self.frames
        ]
        Prompt(frames, **self.streams).run()


def _leaves(value: Any, around: tuple[Any, ...]) -> Iterator[Any]:
    """The leaves of a pytree; ValueError if it has no order or no end.

    It is walked in Python: on Python 3.11, a walk in C++ that fails loses levels of the stack for good, in a container
    that holds itself nearly all of them, and the variables of callers hold anything.
    """
    if any(value is x for x in around):
        raise ValueError("a container that holds itself")
    level = default_registry.flatten_one_level(value)
    if level is None:
        yield value
        return
    for child in level[0]:
        yield from _leaves(child, (*around, value))


def _is_open(x: Any) -> bool:
    """Whether `x` is a tracer whose value a program can compute here."""
    return type(x) is Tracer and is_usable(x)


class _TracedVariable(NamedTuple):
    """A variable that holds tracers."""

    tree: Any
    leaves: list[Any]


def _filled(variable: Any, values: Sequence[Any]) -> Any:
    if type(variable) is not _TracedVariable:
        return variable
    return unflatten(variable.tree, [values[x.index] if type(x) is TracerIndex else x for x in variable.leaves])


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    """The sharding rule: the callback takes full arrays, and what is returned stays as it is."""
    labels = apart(avals)
    return Factors(labels, labels[: len(outs)])


class Breakpoint(DebugCallback):
    """A debug callback that returns its first `num_token` operands; where there are any, it has no other effect."""

    sharding: Sharding = Sharding(factors=_factors)

    name = "breakpoint"
    face = "debug.breakpoint"

    def shape_rule(self, *avals: ShapedArray, num_token: int, **params: Any) -> list[ShapedArray]:
        return list(avals[:num_token])

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return self.bind(*primals, **params), list(tangents[: params["num_token"]])

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        outs, _ = super().batch(axis, operands, dims, **params)
        return outs, [None if d is None else 0 for d in dims[: params["num_token"]]]

    def lower(self, ctx: Any, *operands: Any, num_token: int, **params: Any) -> Any:
        """A call without results; the operands that are returned go around it."""
        if not num_token:
            return super().lower(ctx, *operands, num_token=0, **params)

        def stop(*values: Any) -> list[Any]:
            self.bind(*values, num_token=0, **params)
            return list(values[:num_token])

        jaxpr, _ = build(stop, ctx.avals_in, self.name)
        return ctx.body(jaxpr, operands, self.name)

    def shown_params(self, params: Params) -> Params:
        return {"ordered": params["ordered"]}

    def effects(self, avals: Avals, params: Params) -> Effects:
        return no_effects if params["num_token"] else super().effects(avals, params)

    def _now(self, operands: Values, *, num_token: int, **params: Any) -> list[Any]:
        super()._now(operands, **params)
        return list(operands[:num_token])


breakpoint_p: Final = Breakpoint()
