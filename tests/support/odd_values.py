"""Ordinary and odd values of arguments, for calls that must not kill the process (tests/support/odd_arguments.py)."""

from __future__ import annotations

import collections
import fractions
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini
from xlamini import numpy as jnp
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec

# --- ordinary arguments, by the names of parameters


def _first(*args: Any) -> Any:
    return args[0] if args else 1.0


KEY = xlamini.random.key(0)
VECTOR, MATRIX, STACK = jnp.arange(3.0), jnp.eye(3) + 0.1, jnp.ones((2, 3, 3))
IMAGE, KERNEL = jnp.ones((1, 1, 5, 5)), jnp.ones((1, 1, 3, 3))
MESH = Mesh(np.array(xlamini.devices()[:1]), ("x",))
INDEX = jnp.array([0, 2])
_FUNCTIONS = "fun f func fn body_fun true_fun false_fun callback solve matvec call computation function jaxpr".split()
_TREES = "tree pytree args primals tangents operands init_val xs obj".split()
_INTEGERS = "n N k num size length idx deg order degree bins nin nout seed rank decimals index axis_size m".split()
ORDINARY: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(_FUNCTIONS, (_first, jnp.sin, lambda *a: (a[0], a[0]))),
    **dict.fromkeys(_TREES, (VECTOR, (VECTOR,), {"a": VECTOR, "b": [2.0]})),
    **dict.fromkeys(_INTEGERS, (1, 2, 3)),
    **dict.fromkeys("key rng keys".split(), (KEY, xlamini.random.PRNGKey(0))),
    **dict.fromkeys("shape new_sizes sizes dimensions sz window_dimensions".split(), ((2, 3), (3,), ())),
    **dict.fromkeys("axis axes axis1 axis2 dimension split_axis concat_axis source destination".split(), (0, -1, 1)),
    **dict.fromkeys("dtype new_dtype index_dtype element_type".split(), ("float32", "int8", jnp.bfloat16)),
    **dict.fromkeys("indices idxs scatter_indices segment_ids start_indices".split(), (INDEX, INDEX[:, None], (0, 1))),
    **dict.fromkeys("window_strides strides".split(), ((1, 1), (1,))),
    **dict.fromkeys("devices device platform".split(), (xlamini.devices()[:1], "cpu", xlamini.devices()[0])),
    **dict.fromkeys("arrays tup seq sequence elems condlist choicelist".split(), ([VECTOR, VECTOR], (MATRIX, MATRIX))),
    "a": (MATRIX, VECTOR, MATRIX @ MATRIX.T), "A": (MATRIX,), "b": (VECTOR, MATRIX), "axis_name": ("i",),
    "mesh": (MESH,), "sharding": (NamedSharding(MESH, PartitionSpec("x")),), "subscripts": ("ij,j", "ii"),
    "name": ("a",), "padding": ("SAME", "VALID", ((0, 1), (1, 0))), "mode": ("edge", "same"), "method": ("nearest",),
    "init_value": (0.0,), "pred": (True, VECTOR > 1), "lhs": (MATRIX, IMAGE), "rhs": (MATRIX, KERNEL),
    "treedef": (xlamini.tree.structure((1, 2)),), "image": (jnp.ones((4, 4, 3)),), "pattern": ("i j -> j i",),
    "dimension_numbers": ((((1,), (0,)), ((), ())), ("NCHW", "OIHW", "NCHW"), None), "perm": ((1, 0), [(0, 0)]),
}  # fmt: skip
UNNAMED = (VECTOR, MATRIX, STACK, VECTOR + 1j, jnp.arange(3), 2, 0.5)


# --- odd values


class Boom(Exception):
    """The error of odd objects."""


def _boom(*_: Any, **__: Any) -> Any:
    raise Boom


class Raises:
    """An object whose methods raise."""

    __array__ = __len__ = __iter__ = __getitem__ = __index__ = __float__ = __int__ = __bool__ = __call__ = _boom
    __eq__ = __hash__ = __lt__ = __add__ = __mul__ = _boom
    shape = dtype = ndim = size = __jax_array__ = property(_boom)

    def __repr__(self) -> str:
        return "Raises()"


class Likeness:
    """An object with a shape and a dtype, and no values."""

    shape, dtype, ndim, size = (3,), np.dtype("float32"), 1, 3

    def __repr__(self) -> str:
        return "Likeness()"


def _endless() -> Any:
    x: list[Any] = []
    x.append(x)
    return x


def _deleted() -> Any:
    x = jnp.arange(3.0) + 1
    x.delete()
    return x


def _leaked() -> Any:
    out = []
    xlamini.jit(lambda x: out.append(x) or x)(VECTOR)
    return out[0]


def _deep() -> Any:
    x: Any = 1.0
    for _ in range(3000):
        x = [x]
    return x


NUMBERS = (0, -1, 3, 64, 2**40, 2**62, 2**63 - 1, 2**63, -(2**63), 2**70, -(2**31), 10**400)
VALUES = (1.5, float("nan"), float("inf"), -0.0, 1j, True, None, "", "x", "float32", "\ud800", b"x", ..., object())
KINDS = (int, np.float32, object, Boom, jnp.float4_e2m1fn, "int2", "U3", "datetime64[s]", [("a", "i4")], np.dtype("O"))
CONTAINERS: tuple[Callable[[], Any], ...] = (
    tuple, list, dict, set, _endless, _deep, lambda: {"a": 1, 1: 2}, lambda: {1.0, "a"}, lambda: [None],
    lambda: [[1], 2], lambda: (x for x in (1, 2)), lambda: range(3),
    lambda: slice(None, None, -1), lambda: ("a", 1, None),
    lambda: [2**40, 2**40], lambda: (-1, -1), lambda: ((),), lambda: collections.OrderedDict(a=VECTOR),
    lambda: [VECTOR], lambda: (0, 0), lambda: (1, 2, 3, 4), lambda: (float("nan"),),
    lambda: (2**63,), lambda: bytearray(3),
)  # fmt: skip
SMALL_DTYPES = "int2 uint2 int4 uint4 float4_e2m1fn float8_e4m3fn float8_e8m0fnu bool int8 uint32 float16".split()
ARRAYS: tuple[Callable[[], Any], ...] = (
    *(lambda d=d: jnp.ones(3, d) for d in SMALL_DTYPES), *(lambda d=d: jnp.ones((3, 3), d) for d in SMALL_DTYPES),
    lambda: jnp.float32(2), lambda: jnp.ones((1,) * 9), lambda: jnp.zeros((0,)), lambda: jnp.zeros((0, 3)),
    lambda: jnp.zeros((3, 0), int), lambda: jnp.array([jnp.nan, jnp.inf, -0.0]), lambda: jnp.ones((3, 3), complex),
    lambda: np.array([None, "a"]), lambda: np.array(["a", "b"]), lambda: np.array(["2020"], "datetime64[s]"),
    lambda: np.zeros(2, [("a", "i4")]), lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), lambda: np.zeros(3, ">f4"),
    lambda: np.array(1.0, dtype=object), lambda: np.float64(2), lambda: np.zeros((2, 3))[:, ::-1],
    lambda: np.int64(2**62), lambda: xlamini.random.split(KEY, 3), lambda: KEY, _deleted,
    lambda: np.zeros(3, xlamini.dtypes.float0),
    _leaked, lambda: xlamini.ShapeDtypeStruct((3,), "float32"),
    lambda: xlamini.new_ref(jnp.ones(3)), lambda: memoryview(b"abc"),
)  # fmt: skip
OTHERS: tuple[Callable[[], Any], ...] = (
    Raises, Likeness, Raises, lambda: _boom, lambda: lambda: None, lambda: "abc".upper, lambda: xlamini.jit(jnp.sin),
    lambda: MESH, lambda: PartitionSpec("x", "x"), lambda: PartitionSpec(3), lambda: xlamini.devices()[0], lambda: np,
    lambda: fractions.Fraction(1, 3), lambda: xlamini.make_jaxpr(jnp.sin)(1.0), lambda: xlamini.tree.structure([1, 2]),
    lambda: NamedSharding(MESH, PartitionSpec()),
)  # fmt: skip


def odd(choose: random.Random) -> Any:
    """An odd value."""
    group = choose.choice((NUMBERS, VALUES, KINDS, CONTAINERS, ARRAYS, ARRAYS, OTHERS))
    value = choose.choice(group)
    return value() if group in (CONTAINERS, ARRAYS, OTHERS) else value


def ordinary(name: str, choose: random.Random) -> Any:
    """An ordinary value for a parameter of this name."""
    return choose.choice(ORDINARY.get(name, UNNAMED))
