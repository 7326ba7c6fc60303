"""The public functions of symbolic sizes: shapes from texts, for functions that are exported for any sizes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, aval_of, flatten_axes, tree_flatten, tree_unflatten
from xlamini.core.program.avals import has_shape_and_dtype
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.sizes.parser import parse_shape
from xlamini.core.sizes.scope import SymbolicScope as SymbolicScope
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """A shape with symbolic sizes, from a text such as "batch, 2*n + 1, 3".

    Sizes are made of names, whole numbers, `+ - * // % ^`, floordiv, mod, max and min. Names are variables; each is at
    least 1, unless a constraint such as "b >= 0" allows 0.

    Args:
      shape_spec: the text. `_` stands for the size of `like` at its place, and `...` at the end for the remaining ones;
        None is `...`.
      constraints: what holds of the variables, such as "b <= 2*n" or "mod(b, 8) == 0"; see `SymbolicScope`.
      scope: the scope of the variables, to use those of another shape; by default a new one, with the constraints.
      like: the shape of an example.

    ValueError for a text that is no shape, with the part that is wrong, and for constraints beside a scope.

    >>> b, n = symbolic_shape("b, n", constraints=["n >= 2"])
    >>> double = xlamini.export.export(xlamini.jit(lambda x: x[:, 1:] * 2))(xlamini.ShapeDtypeStruct((b, n), "float32"))
    >>> double.out_avals
    (ShapedArray(float32[b,n - 1]),)
    >>> double.call(jnp.ones((2, 3))).shape, double.call(jnp.ones((5, 2))).shape
    ((2, 2), (5, 1))
    """
    return parse_shape("..." if shape_spec is None else shape_spec, like, _scope(constraints, scope))


def _scope(constraints: Sequence[str], scope: SymbolicScope | None) -> SymbolicScope:
    if scope is None:
        return SymbolicScope(constraints)
    if not isinstance(scope, SymbolicScope):
        raise TypeError(f"scope must be a SymbolicScope, such as b.scope of a size b, got {scope!r}")
    if constraints:
        raise ValueError("constraints are those of the scope, which is given; write SymbolicScope(constraints)")
    return scope


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The types of arguments with symbolic sizes, for `export`.

    Args:
      args: arrays or their types, in containers.
      shapes_specs: texts for `symbolic_shape`, in containers that begin as those of `args`; one text or None may stand
        for a whole container.
      constraints: what holds of the variables.
      scope: their scope; by default a new one, which all arguments share.

    >>> symbolic_args_specs((jnp.ones((4, 3)), jnp.ones(4)), ("b, ...", "b"))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(b,), dtype=float32))
    """
    shared = _scope(constraints, scope)
    leaves, tree = tree_flatten(args)
    avals = [x if has_shape_and_dtype(x) else aval_of(x) for x in leaves]
    specs = flatten_axes("symbolic_args_specs", shapes_specs, tree, ("shapes_specs", "args"))
    types = [_struct(aval, spec, shared) for aval, spec in zip(avals, specs, strict=True)]
    return tree_unflatten(tree, types)


def _struct(aval: ShapedArray, spec: str | None, scope: SymbolicScope) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(symbolic_shape(spec, scope=scope, like=aval.shape), aval.dtype)


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic.

    >>> b, three = symbolic_shape("b, 3")
    >>> is_symbolic_dim(b), is_symbolic_dim(three)
    (True, False)
    """
    return isinstance(p, SymbolicSize)
