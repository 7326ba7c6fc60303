"""What an operation of a user is to the primitives that call it: its types, its call, and its rules."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from xlamini.core import aval_of, flatten_from_user, is_zero, unflatten
from xlamini.core.program.hi_types import as_aval, as_written
from xlamini.core.tracing.state import state
from xlamini.experimental.hijax.call import call_hi_primitive_p
from xlamini.experimental.hijax.hi_call import HiCall, checked_leaves
from xlamini.staging import rebuilt

if TYPE_CHECKING:
    from xlamini.core.pytree.nodes import PyTreeDef


class Operation:
    """An operation with rules of its own; a rule that no subclass writes raises NotImplementedError."""

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: ClassVar[frozenset[Any]] = frozenset()
    in_avals_flat: list[Any]
    out_avals_flat: list[Any]
    in_tree: PyTreeDef
    out_tree: PyTreeDef

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"{type(self).__name__}: set self.{name} before super().__init__()")
        types, self.in_tree = flatten_from_user(tuple(self.in_avals))
        outs, self.out_tree = flatten_from_user(self.out_aval)
        self.in_avals_flat, self.out_avals_flat = types, outs
        self._check_rules()
        self.__dict__.update(self.params)

    def _check_rules(self) -> None:
        if self.writes("vjp_bwd") and self.writes("vjp_bwd_retval"):
            raise AttributeError(f"{type(self).__name__} must write one of vjp_bwd and vjp_bwd_retval, not both")

    @classmethod
    def writes(cls, rule: str) -> bool:
        """Whether a subclass writes this rule, and does not derive it from another one (derived_rules.py)."""
        found = getattr(cls, rule)
        return found is not getattr(Operation, rule) and not hasattr(found, "derived_from")

    def __call__(self, *args: Any) -> Any:
        """Apply it: run `expand` now, or add one equation to the program being traced."""
        leaves = checked_leaves(self, args)
        self.check(*unflatten(self.in_tree, [as_written(aval_of(x)) for x in leaves]))
        if state.builder is None:
            return unflatten(self.out_tree, HiCall(self, leaves).expanded(leaves))
        return self.staging(state.builder, None, *unflatten(self.in_tree, leaves))

    def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
        """Add the equation to the program being traced. A subclass may refuse, or do something else."""
        leaves = flatten_from_user(args)[0]
        return rebuilt(self.out_tree, call_hi_primitive_p.bind(*leaves, call=HiCall(self, leaves)))

    # --- rules

    def expand(self, *args: Any) -> Any:
        """The output, by other operations."""
        self._missing("expand(self, *args)", "running and compiling")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, ...]:
        """The output, mostly `self(*args)`, and residuals. `nzs_in` tells which arguments are differentiated.

        A third result tells which outputs have a tangent, and a fourth has structured residuals, which `vjp_bwd` and
        `linearized` are given behind the residuals.
        """
        self._missing("vjp_fwd(self, nzs_in, *args)", "reverse mode")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> tuple[Any, ...]:
        """The cotangents of the arguments, None for zero; those of outputs may be symbolic zeros."""
        self._missing("vjp_bwd_retval(self, res, outgrad)", "reverse mode")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Like `vjp_bwd_retval`, but puts each cotangent into an accumulator: `arg_accums[0].accum(ct)`."""
        cts = self.vjp_bwd_retval(res, outgrad)
        if not isinstance(cts, tuple | list) or len(cts) != len(arg_accums):
            name, count = type(self).__name__, len(arg_accums)
            raise TypeError(f"{name}.vjp_bwd_retval must return a tuple of {count} cotangents, got {cts!r}")
        for i, (accumulators, ct) in enumerate(zip(arg_accums, cts, strict=True)):
            self._accumulate(i, accumulators, ct)

    def _accumulate(self, index: int, accumulators: Any, ct: Any) -> None:
        every, tree = flatten_from_user(accumulators)
        if ct is None or is_zero(ct):
            return
        leaves, found = flatten_from_user(ct, lambda x: x is None or is_zero(x))
        if found != tree:
            raise TypeError(
                f"{type(self).__name__}.vjp_bwd_retval: the cotangent of argument {index} is of the structure {found}, "
                f"but the argument is of {tree}"
            )
        for accumulator, leaf in zip(every, leaves, strict=True):
            accumulator.accum(leaf)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """The output and its tangent; tangents may be symbolic zeros."""
        self._missing("jvp(self, primals, tangents)", "forward mode")

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, ...]:
        """The output and the residuals of the linear map; those of `vjp_fwd` if it is not written."""
        return self.vjp_fwd(nzs_in, *primals)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """The tangent of the output; where this is not written, reverse mode alone is possible."""
        self._missing("linearized(self, residuals, *tangents)", "linearize")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Put cotangents into the accumulators that are in place of the arguments without value."""
        self._missing("transpose(self, out_ct, *maybe_accums)", "reverse mode through a linear function")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> tuple[Any, Any]:
        """The output for a batch, and its dims."""
        self._missing("batch(self, axis_data, args, dims)` or `def batch_dim_rule(self, axis_data, dims)", "vmap")

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """The batch dimension of the output, from those of the arguments; None for none."""
        self._missing("batch_dim_rule(self, axis_data, dims)", "vmap")

    def dce(self, used_outs: Any, live_ins: Any) -> tuple[Any, Any, Any]:
        """Where outputs are unused: which arguments are needed, which outputs remain, and the operation of these."""
        return True, True, self

    def pp_params(self) -> dict[str, Any]:
        """The params that a printed equation shows: all whose name does not begin with an underscore."""
        return {name: value for name, value in self.params.items() if not name.startswith("_")}

    def check(self, *arg_tys: Any) -> None:
        """Raise an error for arguments that do not fit; their types are equal to `in_avals` already."""

    def _missing(self, signature: str, purpose: str) -> NoReturn:
        raise NotImplementedError(f"for {purpose}, write `def {signature}` in the class {type(self).__qualname__}")

    # --- two of a class with equal types and params are equal

    @property
    def _key(self) -> Any:
        types = tuple(map(as_aval, (*self.in_avals_flat, *self.out_avals_flat)))
        return types, self.in_tree, self.out_tree, tuple(self.params.items())

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and other._key == self._key)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    def __repr__(self) -> str:
        shown = " ".join(f"{name}={value}" for name, value in self.pp_params().items())
        return f"{type(self).__name__}[{shown}]" if shown else type(self).__name__
