"""The errors a user can meet. Each class shows a program that fails, and what to write instead.

Where JAX has the same error, the name and the base classes are the same, so that `except` clauses
carry over.
"""

from __future__ import annotations

from typing import Any

from xlamini.core.errors.call_errors import CallbackError, FfiTargetError, JaxRuntimeError
from xlamini.core.errors.platform_errors import DeviceNotHereError, ForkError, PlatformError, ProcessError
from xlamini.core.errors.rule_errors import JaxprError, JaxprTypeError, MissingRule, PaddingError

__all__ = [
    "CallbackError",
    "ConcretizationTypeError",
    "DeletedArrayError",
    "DeviceNotHereError",
    "FfiTargetError",
    "ForkError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprError",
    "JaxprTypeError",
    "KeyReuseError",
    "MissingRule",
    "NonConcreteBooleanIndexError",
    "PaddingError",
    "PlatformError",
    "ProcessError",
    "ShapeError",
    "ShardingError",
    "TargetError",
    "TooManyCompilationsError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]


class JAXTypeError(TypeError):
    """Base of the errors about a value of the wrong kind: a TypeError.

    >>> try:
    ...     xlamini.jit(lambda x: x if x > 0 else -x)(1.0)
    ... except JAXTypeError as error:
    ...     print(type(error).__name__)
    TracerBoolConversionError
    """


class JAXIndexError(IndexError):
    """Base of the errors about an index: an IndexError.

    >>> try:
    ...     xlamini.jit(lambda x: x[x > 0])(jnp.ones(3))
    ... except JAXIndexError as error:
    ...     print(type(error).__name__)
    NonConcreteBooleanIndexError
    """


class ConcretizationTypeError(JAXTypeError):
    """Python asked for the number behind a traced value, which has none yet.

    Under `jit` a function is traced once for all values; an argument has a shape and a dtype only:

    >>> x = jnp.arange(5.0)
    >>> xlamini.jit(lambda x, n: x[: int(n)])(x, 2)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ConcretizationTypeError: The int of a traced value of type int32[] is needed ...

    Declare an argument that decides shapes or Python control flow static:

    >>> xlamini.jit(lambda x, n: x[:n], static_argnums=1)(x, 2)
    Array([0., 1.], dtype=float32)

    Under `grad` and the other derivatives a number is known outside of `jit`, but has no derivative. Keep it an array,
    or say that it is constant:

    >>> xlamini.grad(lambda x: float(x) * x)(2.0)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ConcretizationTypeError: The float of a traced value ... a number has no derivative...
    >>> xlamini.grad(lambda x: float(lax.stop_gradient(x)) * x)(2.0)
    Array(2., dtype=float32, weak_type=True)
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as the condition of `if`, `while`, `and`, `or`, `not` or `assert`.

    >>> xlamini.jit(lambda x: x if x > 0 else -x)(-1.0)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.TracerBoolConversionError: The truth value of a traced value of type bool[] is needed ...

    Compute both and select, or let the program choose when it runs:

    >>> xlamini.jit(lambda x: jnp.where(x > 0, x, -x))(-1.0)
    Array(1., dtype=float32, weak_type=True)
    >>> xlamini.jit(lambda x: lax.cond(x > 0, lambda: x, lambda: -x))(-1.0)
    Array(1., dtype=float32, weak_type=True)

    `lax.while_loop` does so for `while`. An argument that only chooses what to compute belongs in `static_argnames`.
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used where Python needs an integer: a list index, `range`, a shape.

    >>> prices = [10, 20, 30]
    >>> xlamini.jit(lambda i: prices[i])(1)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.TracerIntegerConversionError: The integer of a traced value of type int32[] is needed ...

    Make the sequence an array, or the index static:

    >>> xlamini.jit(lambda i: jnp.array(prices)[i])(1)
    Array(20, dtype=int32)
    >>> xlamini.jit(lambda i: prices[i], static_argnums=0)(1)
    Array(20, dtype=int32, weak_type=True)
    """


class TracerArrayConversionError(JAXTypeError):
    """A traced value was handed to NumPy, which needs its numbers.

    >>> xlamini.jit(lambda x: np.sin(x))(1.0)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.TracerArrayConversionError: A NumPy array of a traced value of type float32[] is needed ...

    Call the function of the same name in `xlamini.numpy`; for NumPy code that has no such function, call it from the
    program with `pure_callback`:

    >>> xlamini.jit(lambda x: jnp.sin(x))(1.0)
    Array(0.84147096, dtype=float32, weak_type=True)

    Indexing a NumPy array with a traced value fails likewise: write `jnp.asarray(table)[i]`. Under `grad` the numbers
    are known outside of `jit`, but have no derivative: `np.asarray(lax.stop_gradient(x))` says that none is wanted.
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the size of the result is not known.

    >>> x = jnp.arange(3.0)
    >>> xlamini.jit(lambda x: x[x > 0].sum())(x)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.NonConcreteBooleanIndexError: index 0 is the traced mask JitTracer(bool[3]) ...

    Keep the shape and neutralise what the mask excludes:

    >>> xlamini.jit(lambda x: jnp.where(x > 0, x, 0).sum())(x)
    Array(3., dtype=float32)
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its trace had ended.

    >>> seen = []
    >>> @xlamini.jit
    ... def f(x):
    ...     seen.append(x * 2)
    ...     return x
    >>> _ = f(1.0)
    >>> seen[0] + 1
    Traceback (most recent call last):
        ...
    xlamini.core.errors.UnexpectedTracerError: JitTracer(~float32[]), given as the argument 'operands[0]' of add, was
    made while tracing f, at ..., and is used after that trace ended, at ...

    Return the value instead:

    >>> xlamini.jit(lambda x: (x, x * 2))(1.0)
    (Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """

    tracer: Any = None
    """The traced value."""


class TargetError(ValueError):
    """There is no such target to compile for.

    >>> xlamini.target("tpu:v5e:3x3")
    Traceback (most recent call last):
        ...
    xlamini.core.errors.TargetError: target: there is no 'tpu:v5e:3x3': v5e does not come in slices of 3x3; the
    nearest is 'tpu:v5e:2x4'

    The message names the nearest one that there is.
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice, which gives the same "random" numbers twice.

    It is raised under the flag `debug_key_reuse`. Without it, a program that uses a key twice gives a
    `KeyReuseWarning`.

    >>> key = random.key(0)
    >>> with xlamini.debug_key_reuse(True):
    ...     random.normal(key) + random.uniform(key)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.KeyReuseError: uniform at ... uses a random key that was used before, at ...

    Split the key first:

    >>> key_a, key_b = random.split(random.key(1))
    >>> with xlamini.debug_key_reuse(True):
    ...     (random.normal(key_a) + random.uniform(key_b)).shape
    ()
    """


class KeyReuseWarning(UserWarning):
    """A program uses a random key twice; see `KeyReuseError`.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     _ = xlamini.jit(lambda key: random.normal(key) + random.uniform(key))(random.key(0))
    >>> print(seen[0].message)
    <lambda>: a random key is used twice, and gives the same numbers: ...; split it before: ...

    Where it is meant, clone the key; in a library of others, filter out this category of warnings:

    >>> _ = xlamini.jit(lambda key: random.normal(random.clone(key)) + random.uniform(key))(random.key(0))
    """


class StaleValueWarning(UserWarning):
    """A compiled program uses a value that has changed since its function was traced; under flag `debug_purity`.

    >>> import warnings
    >>> rate = 0.1
    >>> step = xlamini.jit(lambda x: x - rate * x)
    >>> with xlamini.debug_purity(True), warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     _ = step(1.0)
    ...     rate = 0.01
    ...     _ = step(1.0)  # goes on with the old rate
    >>> print(seen[0].message)
    <lambda>: rate was 0.1 when the function was traced, and is 0.01 now, but the compiled program goes on with the
    former; ... reads it. ...

    Pass the value as an argument: `jit(lambda x, rate: x - rate * x)`.
    """


class TooManyCompilationsError(RuntimeError):
    """A function was compiled more often than its option `max_compiles` allows.

    >>> step = xlamini.jit(lambda batch: batch.sum(), max_compiles=1)
    >>> step(jnp.ones(64))
    Array(64., dtype=float32)
    >>> step(jnp.ones(17))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.TooManyCompilationsError: <lambda> would be compiled once more, but max_compiles=1.
    shape: batch is float32[17], before float32[64]. To avoid it, pad batch to a few shapes, such as (64,)

    The message says what differs from the nearest earlier call, and what to write instead; `step.compilations()` lists
    the earlier ones.
    """


class ShapeError(TypeError, ValueError):
    """Shapes that don't fit the operation.

    >>> jnp.ones((2, 3)) @ jnp.ones((2, 3))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ShapeError: matmul: contracting dimensions differ: float32[2,3] has (3,) at (1,),
    float32[2,3] has (2,) at (0,); transpose the right operand (.T)
    >>> (jnp.ones((2, 3)) @ jnp.ones((2, 3)).T).shape
    (2, 2)

    It is a ValueError too, because JAX raises now the one, now the other.
    """


class ShardingError(ValueError):
    """An array cannot lie as a sharding says.

    >>> from xlamini.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = xlamini.make_mesh((1,), ("x",))
    >>> NamedSharding(mesh, P("y"))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ShardingError: P('y',) names the axis 'y', which the mesh does not have; it has 'x' of size 1

    Name axes of the mesh, or make the mesh with that axis.
    """


class ShardingTypeError(ShardingError, TypeError):
    """Operands of an operation are split over a mesh in ways that do not go together, or leave the result open.

    On a mesh whose axes are of type Explicit a value's type says how it is split, such as `f32[8@x,4]`. Without the
    flag `strict_sharding` the compiler decides, with a warning.

    >>> from xlamini.sharding import AxisType, NamedSharding, PartitionSpec as P
    >>> mesh = xlamini.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Explicit))
    >>> rows = jnp.ones((8, 4), device=NamedSharding(mesh, P("x")))
    >>> others = jnp.ones((8, 4), device=NamedSharding(mesh, P("y")))
    >>> xlamini.config.update("strict_sharding", True)
    >>> rows + others
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ShardingTypeError: add: operands are split differently, f32[8@x,4] and f32[8@y,4]: ...
    >>> xlamini.typeof(rows + xlamini.reshard(others, NamedSharding(mesh, P("x"))))
    ShapedArray(float32[8@x,4])
    >>> xlamini.config.update("strict_sharding", False)

    Move one of the operands as here, say with `out_sharding=` how the result shall be split, or let the compiler decide
    with `xlamini.sharding.auto_axes`.
    """


class ForbiddenCollectiveError(ShardingError):
    """An operation communicates along a mesh axis along which `sharding.no_collectives` forbids it.

    >>> mesh = xlamini.make_mesh((1,), ("x",))
    >>> total = xlamini.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=xlamini.P("x"), out_specs=xlamini.P())
    >>> with xlamini.sharding.no_collectives({"x"}):
    ...     total(jnp.ones(2))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ForbiddenCollectiveError: psum communicates along the mesh axis 'x', which ...

    Move the operation out of the `with` block, or leave the result unreduced: `out_sharding=P(unreduced={"x"})`.
    """


class TypePromotionError(ValueError):
    """Dtypes that have no common dtype.

    >>> narrow = jnp.ones(3, jnp.float8_e4m3fn)
    >>> narrow + jnp.ones(3)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.TypePromotionError: add: float32, float8_e4m3fn have no common dtype: ...

    Say which one you mean:

    >>> narrow.astype(jnp.float32) + jnp.ones(3)
    Array([2., 2., 2.], dtype=float32)
    """


class DeletedArrayError(RuntimeError):
    """An array was used after its memory was given away, by `delete()` or by donation.

    >>> step = xlamini.jit(lambda w, gradient: w - 0.1 * gradient, donate_argnums=0)
    >>> w = jnp.ones(3)
    >>> updated = step(w, jnp.ones(3))
    >>> w + 1
    Traceback (most recent call last):
        ...
    xlamini.core.errors.DeletedArrayError: Array has been deleted: the argument 'operands[0]' of add, an array
    float32[3], was deleted or donated, and its memory holds something else by now; ...

    Use what the function returned, and keep no other name for a donated argument:

    >>> w = jnp.ones(3)
    >>> w = step(w, jnp.ones(3))
    """


class InconclusiveDimensionOperation(Exception):
    """A symbolic size was used where its value decides: it was compared, or a number was needed.

    >>> b, = xlamini.export.symbolic_shape("b")
    >>> rows = xlamini.ShapeDtypeStruct((b, 4), "float32")
    >>> xlamini.eval_shape(lambda x: x[:8] if x.shape[0] >= 8 else x, rows)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.InconclusiveDimensionOperation: b >= 8 depends on the values of the symbolic sizes; ...

    Say by a constraint which sizes the function is for, or write it so that it does not ask:

    >>> b, = xlamini.export.symbolic_shape("b", constraints=["b >= 8"])
    >>> rows = xlamini.ShapeDtypeStruct((b, 4), "float32")
    >>> xlamini.eval_shape(lambda x: x[:8] if x.shape[0] >= 8 else x, rows).shape
    (8, 4)
    """
