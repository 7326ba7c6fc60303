"""xla_metadata_call: a block of a program as one function of its own, with frontend attributes for XLA on the call.

Unlike `set_xla_metadata`, which marks operations, it marks the block as a whole; derivatives and batches of the block
are blocks with the same attributes.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from xlamini.core import Jaxpr, flatten_from_user
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.wrapping import wraps
from xlamini.primitives.placement.xla_metadata import Attributes, as_attributes
from xlamini.staging import ArgNames, avals_of, check_callable, name_of, rebuilt
from xlamini.staging.call.call import Call
from xlamini.staging.trace.tracing import trace


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Callable[..., Any]:
    """The function `f` as one function of the compiled program, whose call has frontend attributes. A decorator.

    Attributes are strings, numbers or bools; TypeError for others. What they mean is for the compiler to know.

    >>> @xla_metadata_call(inlineable=False)
    ... def block(x):
    ...     return xlamini.numpy.sin(x) * 2
    >>> block(0.0)
    Array(0., dtype=float32, weak_type=True)
    >>> text = xlamini.jit(block).lower(0.0).as_text()
    >>> [line.partition(" : ")[0].strip() for line in text.splitlines() if "frontend" in line]
    ['%0 = call @block(%arg0) {mhlo.frontend_attributes = {inlineable = "false"}}']
    """
    kvs = as_attributes("xla_metadata_call", meta)
    if f is None:
        return functools.partial(_as_block, kvs)
    return _as_block(kvs, f)


def must_fuse_call(identifier: str) -> Callable[..., Any]:
    """A decorator: XLA must put all of the function into one kernel; `identifier` is what its errors call it.

    >>> block = must_fuse_call("activation")(lambda x: xlamini.numpy.sin(x) * 2)
    >>> 'MUST_FUSE = "activation"' in xlamini.jit(block).lower(0.0).as_text()
    True
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def scheduling_group(name: str) -> Callable[..., Any]:
    """A decorator: XLA schedules the operations of the function together, as the group called `name`.

    >>> block = scheduling_group("loads")(lambda x: xlamini.numpy.sin(x) * 2)
    >>> 'scheduling_group = "loads"' in xlamini.jit(block).lower(0.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)


def _as_block(kvs: Attributes, f: Callable[..., Any]) -> Callable[..., Any]:
    check_callable("xla_metadata_call", f)

    @wraps(f)
    @api_boundary
    def block(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = flatten_from_user((args, kwargs))
        names = ArgNames(f, in_tree)
        avals = avals_of(leaves, names, name_of(f))
        traced = trace(f, in_tree, avals, None, names, name_of(f))
        outs = xla_metadata_call_p.bind(*traced.captured, *leaves, jaxpr=traced.jaxpr, xla_metadata=kvs)
        return rebuilt(traced.out_tree, outs)

    return block


class XlaMetadataCall(Call):
    """A call with frontend attributes, which its rewrites keep."""

    name = "xla_metadata_call"

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, xla_metadata: Attributes, **_: Any) -> Any:
        results = ctx.call(jaxpr, operands, jaxpr.name)
        if results:
            ctx.add_frontend_attributes(results[0], xla_metadata)
        return results

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(params.items()))


xla_metadata_call_p: Final = XlaMetadataCall()
