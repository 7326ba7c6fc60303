"""Types of users for tests: rows of numbers with a scale, which say how they are split, and boxed arrays."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import xlamini
from xlamini import P, numpy as jnp
from xlamini.experimental.hijax import HiPspec, HiType, MappingSpec, ShapedArray, VJPHiPrimitive, register_hitype

F32 = np.dtype(np.float32)

# --- rows of numbers, each scaled: a type that says how its values are split, whose tangents are arrays


@dataclass(frozen=True)
class Scaled:
    rows: Any
    scale: Any


@dataclass(frozen=True)
class ScaledTy(HiType):
    shape: tuple[int, ...]
    sharding: Any

    def lo_ty(self) -> list[Any]:
        of_scale = self._placed(self.sharding.spec[:-1])
        return [
            ShapedArray(self.shape, F32, sharding=self.sharding),
            ShapedArray(self.shape[:-1], F32, sharding=of_scale),
        ]

    def _placed(self, entries: Any) -> Any:
        return self.sharding.update(spec=P(*entries))

    def lower_val(self, hi_val: Any) -> list[Any]:
        return [hi_val.rows, hi_val.scale]

    def raise_val(self, *lo_vals: Any) -> Scaled:
        return Scaled(*lo_vals)

    def to_tangent_aval(self) -> Any:
        return ShapedArray(self.shape, F32, sharding=self.sharding)

    def shard(self, mesh: Any, manual_axes: Any, check_vma: bool, spec: Any) -> Any:
        found = self.lo_ty()[0].shard(mesh, manual_axes, check_vma, spec.rows)
        return ScaledTy(found.shape, found.sharding)

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        found = self.lo_ty()[0].unshard(mesh, check_vma, spec.rows)
        return ScaledTy(found.shape, found.sharding)

    def nospec(self, mesh: Any, check_vma: bool, all_names: Any) -> Any:
        return ScaledP(P(all_names))

    def dec_rank(self, size: int | None, spec: Any) -> Any:
        return ScaledTy(self.shape[1:], self._placed(self.sharding.spec[1:]))

    def inc_rank(self, size: int | None, spec: Any) -> Any:
        assert size is not None
        return ScaledTy((size, *self.shape), self._placed((None, *self.sharding.spec)))

    def leading_axis_spec(self) -> Any:
        return Leading()

    def __repr__(self) -> str:
        sizes = [f"{n}@{names}" if names else str(n) for n, names in zip(self.shape, self.sharding.spec, strict=True)]
        return f"scaled[{','.join(sizes)}]"


@dataclass(frozen=True)
class Leading(MappingSpec):
    pass


@dataclass(frozen=True)
class ScaledP(HiPspec):
    rows: Any

    def to_lo(self) -> tuple[Any, ...]:
        return self.rows, P(*self.rows[:1])

    def to_tangent_spec(self) -> Any:
        return self.rows

    def to_ct_spec(self) -> Any:
        return self.rows


register_hitype(Scaled, lambda x: ScaledTy(x.rows.shape, xlamini.typeof(x.rows).sharding))


class Identity(VJPHiPrimitive):
    """Between an array and the values of the type that stand for it; its derivative is the identity."""

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, ct: Any) -> Any:
        return (ct,)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), tangents[0]


class Pack(Identity):
    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), ScaledTy(aval.shape, aval.sharding), {}
        super().__init__()

    def expand(self, x: Any) -> Scaled:
        scale = 1 + jnp.max(jnp.abs(x), axis=-1)
        return Scaled(x / scale[..., None], scale)


class Unpack(Identity):
    def __init__(self, ty: Any):
        self.in_avals, self.out_aval, self.params = (ty,), ty.to_tangent_aval(), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x.rows * x.scale[..., None]

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return unpack(args[0]), 0


def pack(x: Any) -> Any:
    return Pack(xlamini.typeof(x))(x)


def unpack(x: Any) -> Any:
    return Unpack(xlamini.typeof(x))(x)


# --- a type of tangents: one array, by name


@dataclass(frozen=True)
class Boxed:
    value: Any


@dataclass(frozen=True)
class BoxedTy(HiType):
    inner: Any

    def lo_ty(self) -> list[Any]:
        return [self.inner]

    def lower_val(self, hi_val: Any) -> list[Any]:
        return [hi_val.value]

    def raise_val(self, *lo_vals: Any) -> Boxed:
        return Boxed(*lo_vals)

    def to_tangent_aval(self) -> Any:
        return BoxedTy(self.inner.to_tangent_aval())

    def vspace_zero(self) -> Any:
        return box(jnp.zeros(self.inner.shape, self.inner.dtype))

    def vspace_add(self, x: Any, y: Any) -> Any:
        return box(unbox(x) + unbox(y))

    def shard(self, mesh: Any, manual_axes: Any, check_vma: bool, spec: Any) -> Any:
        return BoxedTy(self.inner.shard(mesh, manual_axes, check_vma, spec.inner))

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        return BoxedTy(self.inner.unshard(mesh, check_vma, spec.inner))

    def nospec(self, mesh: Any, check_vma: bool, all_names: Any) -> Any:
        return BoxedP(self.inner.nospec(mesh, check_vma, all_names))


@dataclass(frozen=True)
class BoxedP(HiPspec):
    inner: Any

    def to_lo(self) -> list[Any]:
        return self.inner.to_lo()

    def to_tangent_spec(self) -> Any:
        return BoxedP(self.inner.to_tangent_spec())

    def to_ct_spec(self) -> Any:
        return BoxedP(self.inner.to_ct_spec())


register_hitype(Boxed, lambda x: BoxedTy(xlamini.typeof(x.value)))


class Linear(VJPHiPrimitive):
    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), self(*tangents)


class MakeBox(Linear):
    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), BoxedTy(aval), {}
        super().__init__()

    def expand(self, x: Any) -> Boxed:
        return Boxed(x)

    def transpose(self, ct: Any, accumulator: Any) -> None:  # type: ignore[override]
        accumulator.accum(unbox(ct))


class Unbox(Linear):
    def __init__(self, ty: Any):
        self.in_avals, self.out_aval, self.params = (ty,), ty.inner, {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x.value

    def transpose(self, ct: Any, accumulator: Any) -> None:  # type: ignore[override]
        accumulator.accum(box(ct))


def box(x: Any) -> Any:
    return MakeBox(xlamini.typeof(x))(x)


def unbox(x: Any) -> Any:
    return Unbox(xlamini.typeof(x))(x)
