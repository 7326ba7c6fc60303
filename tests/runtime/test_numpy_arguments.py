"""A NumPy argument is read before the call returns, whatever its size, its alignment and the way it is called."""

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.core.flags.device_flags import zero_copy_arguments

SIZES = (3, 2**14, 2**20)


def buffer(size, aligned, dtype=np.float32):
    """An array whose memory begins at a multiple of 64 bytes, which XLA would share, or 16 bytes behind one."""
    held = np.empty(size * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -held.ctypes.data % 64 + 16 * (not aligned)
    return held[start : start + size * np.dtype(dtype).itemsize].view(dtype)


def late(x):
    """`x` behind a loop that takes longer than a call takes to return."""
    waited = lax.fori_loop(0, 300, lambda _, w: w @ w, jnp.eye(64) / 2)
    return x + waited.sum() * 0


CALLS = {
    "jit": lambda: xlamini.jit(late),
    "leaf of a tree": lambda: (lambda f: lambda x: f({"x": [x, x]}))(xlamini.jit(lambda tree: late(tree["x"][1]))),
    "keyword": lambda: (lambda f: lambda x: f(x=x))(xlamini.jit(late)),
    "grad": lambda: xlamini.jit(xlamini.grad(lambda x: late(x * x).sum() / 2)),
    "grad outside": lambda: xlamini.grad(lambda x: late(x * x).sum() / 2),
    "vmap": lambda: (lambda f: lambda x: f(x[None])[0])(xlamini.vmap(late)),
    "tangent": lambda: lambda x: xlamini.jvp(late, (x,), (x,))[1],
    "compiled": lambda: None,
    "donated": lambda: xlamini.jit(late, donate_argnums=0),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("aligned", [True, False])
def test_a_buffer_that_is_written_after_the_call(call, aligned):
    for size in SIZES:
        x = buffer(size, aligned)
        f = xlamini.jit(late).lower(x).compile() if call == "compiled" else CALLS[call]()
        for i in range(4):
            x[:] = i
            y = f(x)
            x[:] = -1
            np.testing.assert_array_equal(y, np.full(size, i, np.float32))


@pytest.mark.parametrize("size", SIZES)
def test_a_sum_over_one_buffer(size):
    x, w, step = buffer(size, True), jnp.float32(0), xlamini.jit(lambda w, x: w + x.sum())
    for i in range(50):
        x[:] = i % 5
        w = step(w, x)
    assert w == 100 * size


def test_operations_outside_of_jit():
    w, x = jnp.eye(300), buffer(300 * 300, True).reshape(300, 300)
    for i in range(5):
        x[:] = i
        y = w @ w @ w + x
        z = jnp.add(y, x)
        x[:] = -1
        np.testing.assert_array_equal(z, np.eye(300, dtype=np.float32) + 2 * i)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int8, bool, np.complex64, jnp.bfloat16, ">f4"])
def test_dtypes(dtype):
    f = xlamini.jit(late)
    x = buffer(2**12, True, dtype)
    for i in (0, 1, 1):
        x[:] = i
        y = f(x)
        x[:] = 1 - i
        assert (np.asarray(y) == i).all()


def test_an_array_is_passed_as_it_is_after_a_numpy_argument_of_its_type():
    f = xlamini.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(2):
        f(np.ones(2**16, np.float32))
    x = jnp.zeros(2**16)
    for _ in range(3):
        where = x.unsafe_buffer_pointer()
        x = f(x)
        assert x.unsafe_buffer_pointer() == where


def test_a_program_on_a_mesh_copies_too():
    mesh = xlamini.make_mesh((8,), ("i",))
    f = xlamini.jit(late, in_shardings=xlamini.NamedSharding(mesh, xlamini.P("i")))
    x = buffer(2**16, True)
    for i in range(4):
        x[:] = i
        y = f(x)
        x[:] = -1
        np.testing.assert_array_equal(y, np.full(2**16, i, np.float32))


def test_the_flag_shares_memory_and_comes_back():
    f, x = xlamini.jit(lambda x: x + 1), buffer(2**16, True)
    x[:] = 1
    with zero_copy_arguments(True):
        assert [f(x)[0], f(x)[0]] == [2, 2]
    for i in range(3):
        x[:] = i
        y = f(x)
        x[:] = -1
        assert y[-1] == i + 1


def test_a_captured_array_that_changes_between_the_stages():
    x, a = jnp.zeros(4), np.ones(4, np.float32)
    f = xlamini.jit(lambda x: x + a)
    traced = f.trace(x)
    a[:] = 7
    lowered = traced.lower()
    a[:] = 9
    assert lowered.compile()(x)[0] == 1 and f(x)[0] == 1


def test_a_captured_array_that_changes_after_a_transformation():
    a, x = np.ones(4, np.float32), jnp.zeros(4)
    converted, consts = xlamini.closure_convert(lambda x: x + a, x)
    transposed = xlamini.linear_transpose(lambda x: x * a, x)
    linear, pullback = xlamini.linearize(lambda x: x * a, x)[1], xlamini.vjp(lambda x: x * a, x)[1]
    a[:] = 7
    ones = jnp.ones(4)
    assert converted(x, *consts)[0] == 1 and transposed(ones)[0][0] == 1
    assert linear(ones)[0] == 1 and pullback(ones)[0][0] == 1
