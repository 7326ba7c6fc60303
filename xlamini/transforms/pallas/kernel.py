"""`kernel`: a kernel over whole arrays, as a decorator."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlamini.core.program.kernels import CostEstimate
from xlamini.transforms.pallas.api import pallas_call
from xlamini.transforms.pallas.specs import ANY, BlockSpec


def kernel(
    body: Callable[..., None] | None = None,
    out_type: Any = (),
    *,
    mesh: Any = None,
    scratch_types: Sequence[Any] | Mapping[str, Any] = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Any:
    """A function that runs `body` once on the refs of whole arrays, which stay where they are.

    `body` takes the refs of operands, of results of the types `out_type`, and of scratch memory: by position, or by
    name if `scratch_types` is a dict. Without `body` it is a decorator. The other arguments are those of `pallas_call`.

    Raises NotImplementedError for a `mesh`: a kernel runs on one core.

    >>> @kernel(out_type=xlamini.ShapeDtypeStruct((4,), "float32"))
    ... def double(x, o):
    ...     o[...] = 2 * x[...]
    >>> double(jnp.ones(4))
    Array([2., 2., 2., 2.], dtype=float32)
    """
    options = {"interpret": interpret, "name": name, "compiler_params": compiler_params, "cost_estimate": cost_estimate}
    if body is None:
        return functools.partial(kernel, out_type=out_type, mesh=mesh, scratch_types=scratch_types, **options)
    if mesh is not None:
        raise NotImplementedError("kernel: a mesh of several cores is not built; leave it out, for one core")
    names = list(scratch_types) if isinstance(scratch_types, Mapping) else []
    scratch = list(scratch_types.values()) if isinstance(scratch_types, Mapping) else scratch_types

    @functools.wraps(body)
    def of_refs(*refs: Any) -> None:
        count = len(refs) - len(names)
        return body(*refs[:count], **dict(zip(names, refs[count:], strict=True)))

    def call(*args: Any) -> Any:
        outs = [BlockSpec(memory_space=ANY)] * len(out_type) if isinstance(out_type, list | tuple) else None
        specs = [BlockSpec(memory_space=ANY) for _ in args]
        return pallas_call(
            of_refs, out_type, in_specs=specs, out_specs=outs or BlockSpec(memory_space=ANY),
            scratch_shapes=scratch, **options,
        )(*args)  # fmt: skip

    return call
