"""HiPrim: what users derive from. They write its rules, which are the methods of Operation but `__call__`."""
from __future__ import annotations

from typing import Any

from xlamini.experimental.hijax.batch_rules import BatchedOperation
from xlamini.experimental.hijax.operation import Operation


class HiPrim(Operation):
    """An operation with rules of its own, which is one equation of a program until it is lowered.

    `__init__` of a subclass sets `in_avals`, a type for each argument, or a tree of types; `out_aval`, a type or a tree
    of them; and `params`, options by name, which become attributes and must be hashable for two equal ones to be equal.
    Then it calls `super().__init__()`. The instance is a function of values of these types.

    Only `expand` is needed. Another rule is needed by the transformation that it is for, and raises NotImplementedError
    if it is missing: `vjp_fwd` and `vjp_bwd_retval` (or `vjp_bwd`) by reverse mode, `jvp` by forward mode, `lin` and
    `linearized` by `linearize`, `batch` or `batch_dim_rule` by `vmap`, `transpose` where it is linear in an argument.
    Where only `jvp` is written, reverse mode follows from it, if that rule is linear in the tangents.

    >>> class Cube(HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x * x
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), x
    ...     def vjp_bwd_retval(self, x, ct):
    ...         return (3 * x * x * ct,)
    >>> cube = Cube(xlamini.typeof(2.0))
    >>> cube(2.0), xlamini.grad(cube)(2.0)
    (8.0, Array(12., dtype=float32, weak_type=True))
    """

    def batch(self, axis_data: Any, args: Any, dims: Any) -> tuple[Any, Any]:
        """The output for a batch, and its dims; by `batch_dim_rule` if it is not written."""
        if not self.writes("batch_dim_rule"):
            return super().batch(axis_data, args, dims)
        out_dim = self.batch_dim_rule(axis_data, dims)
        return BatchedOperation(self, axis_data, dims, out_dim)(*args), out_dim


VJPHiPrimitive = HiPrim
"""The name of `HiPrim` until JAX 0.11: deprecated, for programs of that time."""
