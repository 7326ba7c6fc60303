"""Programs for JAX and xlamini alike, which tests/golden/exported has as files that later versions must read."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
ARGUMENTS = (X, X, {"s": X[0, :1]})
PLATFORMS = ("cpu", "cuda", "tpu")


def program(jax: ModuleType) -> Callable[..., Any]:
    """What was exported: its second argument is not read; its Cholesky factor is another kernel on each platform."""
    jnp, lax = jax.numpy, jax.lax

    def exported(x: Any, unused: Any, options: dict[str, Any]) -> Any:
        sums = lax.scan(lambda total, row: (total + row, total * row), x[0], x)
        factor = jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(2))
        return {"sorted": jnp.sort(lax.erf(x) + jnp.sin(x)), "factor": factor, "sums": sums, "top": options["s"] * x}

    return exported


def sharded_program(jax: ModuleType) -> Callable[..., Any]:
    """What was exported for 8 devices, without a look at them."""
    jnp = jax.numpy
    return lambda x, w: jnp.sum(jnp.tanh(x @ w) ** 2)


def shardings(jax: ModuleType) -> list[Any]:
    """The shardings of its arguments."""
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)
    specs = jax.sharding.PartitionSpec("x"), jax.sharding.PartitionSpec(None, "y")
    return [jax.sharding.NamedSharding(mesh, spec) for spec in specs]


# --- with symbolic sizes


class Symbolic(NamedTuple):
    """A program with symbolic sizes, and the sizes at which it is called."""

    of: Callable[[ModuleType], Callable[..., Any]]
    symbols: str
    shapes: Callable[..., list[tuple[Any, ...]]]
    """The shapes of the arguments for sizes, which are numbers or symbols."""
    sizes: list[tuple[int, ...]]
    dtypes: tuple[str, ...] = ("float32",)
    constraints: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ("cpu",)
    vjp_order: int = 0

    def types(self, jax: ModuleType) -> list[Any]:
        """The types of the arguments for all sizes."""
        symbols = jax.export.symbolic_shape(self.symbols, constraints=self.constraints)
        each = zip(self.shapes(*symbols), self.dtypes, strict=True)
        return [jax.ShapeDtypeStruct(shape, _dtype(jax, dtype)) for shape, dtype in each]

    def arguments(self, jax: ModuleType, sizes: tuple[int, ...]) -> list[Any]:
        """Arguments for numbers."""
        return [_data(jax, shape, dtype) for shape, dtype in zip(self.shapes(*sizes), self.dtypes, strict=True)]


def _dtype(jax: ModuleType, dtype: str) -> Any:
    return jax.random.key(0).dtype if dtype == "key" else jax.numpy.dtype(dtype)


def _data(jax: ModuleType, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "key":
        return jax.random.split(jax.random.key(7), shape)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (values % 15 - 7 if "int" in dtype else np.sin(values + 1.0)).astype(_dtype(jax, dtype))


def _two_symbols(jax: ModuleType) -> Callable[..., Any]:
    jnp = jax.numpy
    return lambda x: {
        "gram": jnp.sin(x) @ x.T,
        "pairs": x.reshape(2, x.shape[0] // 2, -1)[..., 1:],
        "tail": (x[:, -4:].sum(0), jnp.arange(x.shape[1]) % x.shape[0]),
    }


def _expressions(jax: ModuleType) -> Callable[..., Any]:
    jnp = jax.numpy
    return lambda odd, x: (odd[::2] * x[: x.shape[0] // 2].sum(), jnp.pad(x, (0, -x.shape[0] % 4)), odd[-3:])


def _positive(jnp: Any, x: Any) -> Any:
    return x @ jnp.swapaxes(x, -1, -2) + 3 * jnp.eye(x.shape[-1])


def _kernels(jax: ModuleType) -> Callable[..., Any]:
    jnp = jax.numpy
    return lambda x, y: (jnp.linalg.cholesky(_positive(jnp, x)), jnp.linalg.solve(_positive(jnp, x), y))


def _scan(jax: ModuleType) -> Callable[..., Any]:
    jnp = jax.numpy
    return lambda x: jax.lax.scan(lambda c, row: (c + jnp.sin(row), c * row), jnp.zeros(x.shape[1]), x)


def _narrow(jax: ModuleType) -> Callable[..., Any]:
    jnp = jax.numpy
    return lambda x, n: {"x": jnp.tanh(x) * 2, "n": n + n[:1], "top": (x * n.astype(x.dtype)).max(0)}


SYMBOLIC = {
    "one_symbol": Symbolic(
        lambda jax: lambda x: jax.numpy.concatenate([x, x * x.shape[0]]) / 2, "b", lambda b: [(b,)], [(1,), (2,), (7,)]
    ),
    "two_symbols": Symbolic(
        _two_symbols, "b, n", lambda b, n: [(b, n)], [(2, 5), (4, 6), (8, 9)],
        constraints=("n >= 5", "mod(b, 2) == 0"),
    ),
    "expressions": Symbolic(
        _expressions, "a, b", lambda a, b: [(2 * a + 1,), (b,)], [(1, 1), (3, 5), (6, 11)],
        ("float32", "float32"), ("b <= 2*a",),
    ),
    "platforms": Symbolic(
        lambda jax: lambda x: jax.numpy.sort(jax.numpy.linalg.eigvalsh(_positive(jax.numpy, x))) / x.shape[0],
        "b", lambda b: [(b, 3, 3)], [(1,), (2,), (5,)], platforms=PLATFORMS,
    ),
    "with_vjp": Symbolic(
        lambda jax: lambda x, w: jax.numpy.tanh(x @ w).mean(0), "b, n", lambda b, n: [(b, n), (n, 2)],
        [(1, 2), (3, 2), (4, 5)], ("float32", "float32"), vjp_order=2,
    ),
    "kernels": Symbolic(
        _kernels, "b, n", lambda b, n: [(b, n, n), (b, n, 2)], [(1, 1), (2, 3), (4, 2)], ("float32", "float32"),
        vjp_order=1,
    ),
    "scan": Symbolic(_scan, "t", lambda t: [(t, 3)], [(1,), (2,), (6,)], vjp_order=1),
    "keys": Symbolic(
        lambda jax: lambda keys, x: jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys) * x,
        "b", lambda b: [(b,), (b, 1)], [(1,), (2,), (5,)], ("key", "float32"),
    ),
    "narrow": Symbolic(_narrow, "b", lambda b: [(b, 4), (b, 4)], [(1,), (3,), (4,)], ("bfloat16", "int4")),
}  # fmt: skip
"""By the names of their files in tests/golden/exported/format_3, and in jax_0.10.2."""


# --- with containers


class State(NamedTuple):
    """A container that is registered under a name."""

    mean: Any
    count: Any


def register(jax: ModuleType) -> None:
    """Make containers known to files."""
    jax.export.register_namedtuple_serialization(State, serialized_name="golden.State")


def containers_program(jax: ModuleType) -> Callable[..., Any]:
    """What was exported with containers of all kinds; `count` is whole, so its cotangents are of dtype float0."""

    def containers(state: State, options: dict[str, Any], *, rows: OrderedDict[str, Any]) -> Any:
        total = sum(x.sum(0) for x in rows.values()) + options["bias"][0]
        moved = State(state.mean * total + options["scale"], state.count + 1)
        return [moved, None, OrderedDict(z=total, a=(moved.mean * state.count,))]

    return containers


CONTAINER_SIZES = (1, 3, 4)


def container_arguments(b: Any, make: Callable[..., Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Its arguments: `make` gives each for a shape and a dtype."""
    state = State(make((b, 2), "float32"), make((b, 1), "int32"))
    rows = OrderedDict(second=make((b, 2), "float32"), first=make((3, 2), "float32"))
    return (state, {"scale": make((), "float32"), "bias": [make((2,), "float32")]}), {"rows": rows}


def container_values(fun: Callable[..., Any], jax: ModuleType) -> list[list[Any]]:
    """The results at each size, flat, and the derivative by the state's mean."""

    def each(b: int) -> list[Any]:
        (state, options), rows = container_arguments(b, lambda *type_of: _data(jax, *type_of))

        def of_mean(mean: Any) -> Any:
            return fun(State(mean, state.count), options, **rows)

        gradient = jax.grad(lambda mean: sum(map(jax.numpy.sum, jax.tree.leaves(of_mean(mean)[2]))))
        return [*jax.tree.leaves(of_mean(state.mean)), gradient(state.mean)]

    return list(map(each, CONTAINER_SIZES))


def loss(fun: Callable[..., Any], jax: ModuleType) -> Callable[..., Any]:
    """A number that depends on all results in floating point, for derivatives."""
    jnp = jax.numpy
    return lambda *args: sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(fun(*args)))


def values(fun: Callable[..., Any], name: str, jax: ModuleType) -> list[list[Any]]:
    """The results of a program at each of its sizes, flat, and its derivatives where it is stored with them."""
    known = SYMBOLIC[name]
    each = [known.arguments(jax, sizes) for sizes in known.sizes]
    found = [jax.tree.leaves(fun(*arguments)) for arguments in each]
    if known.vjp_order:
        places = tuple(range(len(known.dtypes)))
        found = [[*f, *jax.grad(loss(fun, jax), places)(*x)] for f, x in zip(found, each, strict=True)]
    if known.vjp_order == 2:
        twice = jax.grad(lambda *x: jax.numpy.sum(jax.grad(loss(fun, jax))(*x) ** 2))
        found = [[*f, twice(*x)] for f, x in zip(found, each, strict=True)]
    return found
