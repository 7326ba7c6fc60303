"""The errors a user can meet. Each class shows a program that fails, and what to write instead.

Where JAX has the same error, the name and the base classes are the same, so that `except` clauses
carry over.
"""

from __future__ import annotations

from jaxlib._jax import JaxRuntimeError

__all__ = [
    "CallbackError",
    "ConcretizationTypeError",
    "DeletedArrayError",
    "DeviceNotHereError",
    "FfiTargetError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprError",
    "KeyReuseError",
    "MissingRule",
    "NonConcreteBooleanIndexError",
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
    """Base of the errors about a value of the wrong kind."""


class JAXIndexError(IndexError):
    """Base of the errors about an index."""


class ConcretizationTypeError(JAXTypeError):
    """Python asked for the number behind a traced value, which has none yet.

    Under `jit` a function is traced once for all values; an argument has a shape and a dtype only:

        @jit
        def head(x, n):
            return x[: int(n)]  # fails: n is traced

    Declare an argument that decides shapes or Python control flow static:

        head = jit(lambda x, n: x[:n], static_argnames="n")

    Under `grad` and the other derivatives a number is known outside of `jit`, but has no derivative:

        grad(lambda x: float(x) * x)(2.0)  # fails: the derivative of float(x) would be lost

    Keep it an array, or say that it is constant: `float(lax.stop_gradient(x))`.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as the condition of `if`, `while`, `and`, `or`, `not` or `assert`.

        @jit
        def size(x):
            return x if x > 0 else -x  # fails: the sign is not known while tracing

    Compute both and select, or let the program choose when it runs:

        @jit
        def size(x):
            return jnp.where(x > 0, x, -x)

        @jit
        def size(x):
            return lax.cond(x > 0, lambda: x, lambda: -x)

    `lax.while_loop` does so for `while`. An argument that only chooses what to compute belongs in `static_argnames`.
    """


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used where Python needs an integer: a list index, `range`, a shape.

        names = [10, 20, 30]
        jit(lambda i: names[i])(1)  # fails: a list can't be indexed by a traced value

    Make the sequence an array, or the index static:

        jit(lambda i: jnp.array(names)[i])(1)
        jit(lambda i: names[i], static_argnums=0)(1)
    """


class TracerArrayConversionError(JAXTypeError):
    """A traced value was handed to NumPy, which needs its numbers.

        jit(lambda x: np.sin(x))(1.0)  # fails: np.sin runs now, x exists later

    Call the function of the same name in `xlamini.numpy`; for NumPy code that has no such function,
    call it from the program with `pure_callback`:

        jit(lambda x: jnp.sin(x))(1.0)

    Indexing a NumPy array with a traced value fails likewise: write `jnp.asarray(table)[i]`. Under `grad` the numbers
    are known outside of `jit`, but have no derivative: `np.asarray(lax.stop_gradient(x))` says that none is wanted.
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the size of the result is not known.

        jit(lambda x: x[x > 0].sum())(x)  # fails: how many elements are positive?

    Keep the shape and neutralise what the mask excludes:

        jit(lambda x: jnp.where(x > 0, x, 0).sum())(x)
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its trace had ended.

        seen = []

        @jit
        def f(x):
            seen.append(x * 2)  # keeps a traced value
            return x

        f(1.0)
        seen[0] + 1  # fails: it never was a number

    Return the value instead:

        @jit
        def f(x):
            return x, x * 2
    """


class PlatformError(RuntimeError):
    """A platform was asked for that is not there or does not start.

        XLAMINI_PLATFORMS=cuda python train.py  # fails where no GPU is attached

    The message says what is missing; `python -m xlamini doctor` looks at everything a platform needs and has one fix
    for each problem. Nothing falls back to the CPU in silence: name it to allow it.

        XLAMINI_PLATFORMS=cpu python train.py
    """


class ProcessError(RuntimeError):
    """Processes that compute together did not come together: one is missing, or they run different programs.

        distributed.initialize()
        if process_index() == 0:
            total = jnp.sum(x)  # fails: x lies on devices of all processes, and the others do not compute its sum

    All processes run the same program on what they share; what one does alone comes after:

        total = jnp.sum(x)
        if process_index() == 0:
            print(total)
    """


class DeviceNotHereError(PlatformError):
    """A program that was compiled for a target was called.

        step = jit(f).lower(x).compile(target=xlamini.target("tpu:v5e:2x2"))
        step(x)  # fails: the TPU is not here

    It can be looked at; to run it, take it to a machine that has the device:

        open("step.bin", "wb").write(step.serialize())
        step = xlamini.load("step.bin")  # there
    """


class TargetError(ValueError):
    """There is no such target to compile for.

        xlamini.target("tpu:v5e:3x3")  # fails: v5e does not come in slices of 3x3

    The message names the nearest one that there is: xlamini.target("tpu:v5e:2x4").
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice, which gives the same "random" numbers twice.

        a = random.normal(key)
        b = random.uniform(key)  # fails under debug_key_reuse; within one program a KeyReuseWarning without it

    Split the key first:

        key_a, key_b = random.split(key)
        a, b = random.normal(key_a), random.uniform(key_b)
    """


class KeyReuseWarning(UserWarning):
    """A program uses a random key twice; see `KeyReuseError`.

    Where it is meant, write random.clone(key); in a library of others, filter out this category of warnings.
    """


class StaleValueWarning(UserWarning):
    """A compiled program uses a value that has changed since its function was traced; under flag `debug_purity`.

        step = jit(lambda x: x - rate * x)
        step(1.0)
        rate = 0.01
        step(1.0)  # goes on with the old rate: warns under debug_purity

    Pass the value as an argument: jit(lambda x, rate: x - rate * x).
    """


class TooManyCompilationsError(RuntimeError):
    """A function was compiled more often than its option `max_compiles` allows.

        @jit(max_compiles=1)
        def step(batch):
            ...

        step(jnp.ones(64))
        step(jnp.ones(17))  # fails: the last batch has another shape

    The message says what differs from the nearest earlier call, and what to write instead; `step.compilations()` lists
    the earlier ones.
    """


class ShapeError(TypeError, ValueError):
    """Shapes that don't fit the operation.

        jnp.ones((2, 3)) @ jnp.ones((2, 3))  # fails: 3 columns against 2 rows

    It is a ValueError too, because JAX raises now the one, now the other. The message names the operands and their
    shapes. Here the right operand needs a transpose:

        jnp.ones((2, 3)) @ jnp.ones((2, 3)).T
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

        jnp.ones((8, 4), device=NamedSharding(mesh, P("x"))) + jnp.ones((8, 4), device=NamedSharding(mesh, P("y")))

    On a mesh whose axes are of type Explicit a value's type says how it is split, such as `f32[8@x,4]`. Move one of the
    operands with `xlamini.reshard(x, P(...))`, say with `out_sharding=` how the result shall be split, or let the
    compiler decide with `xlamini.sharding.auto_axes`.
    """


class TypePromotionError(ValueError):
    """Dtypes that have no common dtype.

        jnp.ones(3, jnp.float8_e4m3fn) + jnp.ones(3)  # fails: would lose or invent precision

    Say which one you mean:

        jnp.ones(3, jnp.float8_e4m3fn).astype(jnp.float32) + jnp.ones(3)
    """


class DeletedArrayError(RuntimeError):
    """An array was used after its memory was given away, by `delete()` or by donation.

        step = jit(update, donate_argnums=0)
        new = step(params, grads)
        params["w"]  # fails: its buffer now holds new["w"]

    Use what the function returned, and keep no other name for a donated argument:

        params = step(params, grads)
    """


class CallbackError(JaxRuntimeError):
    """A Python function that a program calls raised, or returned something else than it was announced to return.

        def load(i):
            return np.load(f"part-{i}.npy")  # fails: there is no such file, or it holds other shapes

        jit(lambda i: pure_callback(load, ShapeDtypeStruct((8,), "float32"), i))(3)

    The message has the function's name, the line that put the callback into the program, and the traceback of the
    function's own error, which is also the `__cause__`. Mend the function, or announce what it does return:

        pure_callback(load, ShapeDtypeStruct((16,), "float32"), i)
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ForkError(RuntimeError):
    """An operation in a process that was forked after its parent had used a device.

        jnp.ones(3)  # starts XLA's threads
        if os.fork() == 0:
            jnp.ones(3) + 1  # fails: the threads that would compute it are the parent's

    Start processes anew, which also multiprocessing and PyTorch's DataLoader can:

        multiprocessing.get_context("spawn").Process(target=work).start()
        DataLoader(data, num_workers=4, multiprocessing_context="spawn")

    or use NumPy in the child; reading arrays that the parent has computed works.
    """


class FfiTargetError(JaxRuntimeError):
    """A program calls an FFI target that is not registered, when it is compiled or loaded.

        ffi.ffi_call("rms_norm", ShapeDtypeStruct((8,), "float32"))(x)  # fails: no function has this name yet

    Register the function of the compiled library under that name, for the platform the program runs on:

        library = ctypes.CDLL("./librms.so")
        ffi.register_ffi_target("rms_norm", ffi.pycapsule(library.RmsNorm), platform="cpu")
    """


class MissingRule(NotImplementedError):
    """A primitive lacks the rule that a transformation needs.

        class Twice(Primitive):  # has a shape_rule and lower, but no jvp
            ...

        grad(twice)(1.0)  # fails

    Write the method that the message names, next to the primitive's other rules:

        def jvp(self, primals, tangents): ...
    """


class InconclusiveDimensionOperation(Exception):
    """Symbolic sizes were compared, and the result depends on their values.

    Sizes are static here, so nothing raises it; it exists so that `except` clauses of programs for JAX carry over.
    """


class JaxprError(TypeError):
    """A jaxpr is not well formed: a variable out of scope, or a type its rule does not give.

    A rewrite or a shape rule is wrong, not the user's program. The checker runs under

        config.update("enable_checks", True)

    and its message shows the equation, and the rewrites that led to it.
    """


JaxprTypeError = JaxprError
