"""No input kills the process: programs that XLA or CPython would abort on, each in a process of its own.

Each raises a Python error, or works. They were found by trying: sizes beyond 63 bits, elements of two bits, allocations
that fail, memory that is gone, trees without an end.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.full  # each starts a process

BEGIN = """
import numpy as np, pickle, sys, threading, warnings
import xlamini
from xlamini import lax, random, tree
from xlamini import numpy as jnp
from xlamini.errors import *

def raises(error, program):
    try:
        program()
    except error as found:
        return str(found)
    raise AssertionError("no error")
"""

PROGRAMS = {
    "sizes beyond 63 bits": """
        huge = (2**31, 2**31, 4)
        for program in (
            lambda: jnp.zeros(huge),
            lambda: jnp.broadcast_to(1.0, huge),
            lambda: lax.broadcast_in_dim(1.0, huge, ()),
            lambda: lax.pad(jnp.ones(3), 0.0, ((2**62, 2**62, 0),)),
            lambda: jnp.tile(jnp.ones(3), 2**62),
            lambda: xlamini.vmap(lambda: 1.0, axis_size=2**62)(),
            lambda: xlamini.jit(lambda x: jnp.broadcast_to(x, huge).sum())(1.0),
            lambda: xlamini.ShapeDtypeStruct((-(2**63),), "float32"),
            lambda: xlamini.eval_shape(lambda x: x + 1, xlamini.ShapeDtypeStruct((2**70,), "float32")),
            lambda: random.normal(random.key(0), (2**62,)),
        ):
            raises((ShapeError, OverflowError), program)
    """,
    "sums of sizes beyond 63 bits": """
        x, image, kernel, far = jnp.ones(3), jnp.ones((1, 1, 5, 5)), jnp.ones((1, 1, 3, 3)), 2**62
        conv, window = lax.conv_general_dilated, lax.reduce_window
        for program in (
            lambda: lax.pad(x, 0.0, [(-far, far, 0)]),
            lambda: lax.pad(x, 0.0, [(far, -far, 0)]),
            lambda: lax.pad(x, 0.0, [(far, -far, 1)]),
            lambda: xlamini.grad(lambda x: lax.pad(x, 0.0, [(far, -far, 0)]).sum())(x),
            lambda: conv(image, kernel, (1, 1), "SAME", rhs_dilation=(far, 1)),
            lambda: conv(image, kernel, (far, 1), [(far, far), (0, 0)]),
            lambda: conv(image, kernel, (1, 1), [(-far, far), (0, 0)]),
            lambda: window(x, 0.0, lax.add, (far,), (1,), "SAME"),
            lambda: window(x, 0.0, lax.add, (2**40,), (1,), "SAME"),
            lambda: window(x, -jnp.inf, lax.max, (2,), (1,), [(0, 0)], window_dilation=(far,)),
            lambda: xlamini.grad(lambda x: window(x, -jnp.inf, lax.max, (2,), (far,), [(far, -far)]).sum())(x),
        ):
            raises(ShapeError, program)
    """,
    "compiler options": """
        name = "xla_cpu_parallel_codegen_split_count"
        for value in (-1, 0, 2**31 - 1, "-1", 2**70):
            f = xlamini.jit(lambda x: x + 1, compiler_options={name: value})
            assert "must be from 1 to" in raises(ValueError, lambda: f(1.0))
        assert "must be a bool" in raises(TypeError, lambda: xlamini.jit(abs, compiler_options={name: None})(1.0))
        assert xlamini.jit(abs, compiler_options={name: 2})(-1.0) == 1
    """,
    "more than the machine's memory": """
        row, column = jnp.zeros((1, 2**21), int), jnp.zeros((2**21, 1), int)
        for program in (lambda: row + column, lambda: jnp.zeros(2**45), lambda: lax.iota(int, 2**40)):
            raises((ShapeError, JaxRuntimeError), program)
        for shape in ((2**36,), (2**20, 2**20)):
            lowered = xlamini.jit(xlamini.jit(jnp.sin)).lower
            kind = xlamini.ShapeDtypeStruct(shape, "float32")
            assert "too large for a CPU" in raises(ShapeError, lambda: lowered(kind))
    """,
    "dtypes without operations": """
        for dtype in ("float6_e2m3fn", "float6_e3m2fn", "int1", "uint1"):
            raises((TypeError, JaxRuntimeError), lambda: jnp.ones((2, 2), dtype) + jnp.ones((2, 2), dtype))
            raises((TypeError, JaxRuntimeError), lambda: jnp.pad(jnp.ones((2, 2), dtype), 1))
    """,
    "elements of two bits": """
        for dtype in ("int2", "uint2", "int4", "uint4", "float4_e2m1fn"):
            x = jnp.array([1, 0], dtype)
            assert jnp.concatenate([x, x]).tolist() == [1, 0, 1, 0] and (x + x).dtype == x.dtype
    """,
    "arrays that were deleted": """
        def uses(x):
            yield lambda: np.from_dlpack(x)
            yield lambda: pickle.dumps(x)
            yield lambda: x.unsafe_buffer_pointer()
            yield lambda: x.addressable_shards
            yield lambda: xlamini.jit(lambda y: x * y)(2.0)
            yield lambda: xlamini.vjp(lambda y: x * y, 2.0)[1](jnp.ones(3))
        for give_away in (lambda x: x.delete(), xlamini.jit(lambda x: x + 1, donate_argnums=0)):
            for number in range(6):
                x = jnp.arange(3.0)
                give_away(x)
                raises(DeletedArrayError, list(uses(x))[number])
        x = jnp.arange(3.0)
        rows, view, shard = iter(x), memoryview(x), x.addressable_shards[0].data
        x.delete()
        assert bytes(view)[:4] == bytes(4) and len(list(rows)) == 3
        raises(DeletedArrayError, lambda: shard + 1)
    """,
    "captured arrays that were donated later": """
        x = jnp.arange(3.0)
        f = xlamini.jit(lambda y: x + y)
        f(1.0), f(1.0)
        xlamini.jit(lambda x: x + 1, donate_argnums=0)(x)
        raises((DeletedArrayError, JaxRuntimeError, ValueError), lambda: f(1.0))
    """,
    "trees without an end": """
        endless = []
        endless.append(endless)
        deep = 1.0
        for _ in range(100_000):
            deep = (deep,)
        for x in (endless, deep):
            raises(RecursionError, lambda: tree.leaves(x))
            raises(RecursionError, lambda: xlamini.grad(lambda y: 1.0)(x))
            raises((RecursionError, SystemError), lambda: xlamini.jit(lambda y: 1.0)(x))
            raises(RecursionError, lambda: xlamini.jit(lambda y: x)(1.0))
    """,
    "recursion": """
        f = xlamini.jit(lambda x: f(x))
        g = xlamini.jit(lambda x: xlamini.grad(g)(x))
        for h in (f, g):
            raises(RecursionError, lambda: h(1.0))
    """,
    "numbers that no integer holds": """
        x = jnp.array([jnp.nan, jnp.inf, -jnp.inf, 1e30])
        for dtype in ("int2", "int4", "int8", "uint8", "int32", "uint32", "bool"):
            np.asarray(x.astype(dtype))
        numbers = jnp.array([-(2**31)])
        for result in (numbers // -1, lax.div(numbers, jnp.array([0])), lax.rem(numbers, jnp.array([-1]))):
            np.asarray(result)
    """,
    "indices out of bounds by promise": """
        x, far = jnp.ones((3, 4)), jnp.full(4, 10**9)
        for index in (far, -far):
            np.asarray(x.at[index].get(mode="promise_in_bounds"))
            np.asarray(x.at[index].add(1.0, mode="promise_in_bounds"))
    """,
    "nodes and static arguments that raise": """
        class Node: pass
        class Static:
            __hash__ = lambda self: 1
            def __eq__(self, other): raise RuntimeError("no equality")
        xlamini.tree_util.register_pytree_node(Node, lambda n: ((1.0,), None), lambda data, children: 1 / 0)
        raises(ZeroDivisionError, lambda: xlamini.jit(lambda n: 1.0)(Node()))
        f = xlamini.jit(lambda x, s: x, static_argnums=1)
        f(1.0, Static())
        raises((ValueError, RuntimeError), lambda: f(1.0, Static()))
    """,
    "devices and shardings that are none": """
        for place in (3, [], object(), type, xlamini.ShapeDtypeStruct((1,), "float32")):
            raises((TypeError, ValueError), lambda: xlamini.device_put(1.0, place))
            raises(TypeError, lambda: xlamini.jit(lambda x: x, device=place)(1.0))
            raises(TypeError, lambda: xlamini.default_device(place))
    """,
    "many dimensions": """
        x = jnp.ones((1,) * 64)
        assert (x + 1).sum() == 2
        assert x[None].ndim == 65 and x[None].sum() == 1
        for read in (np.asarray, repr, xlamini.device_get, lambda x: x.item()):
            assert "NumPy has no array of 65 dimensions" in raises(ValueError, lambda: read(x[None]))
    """,
    "threads": """
        f, failed = xlamini.jit(lambda x: x * 2 + 1), []
        give = xlamini.jit(lambda x: x + 1, donate_argnums=0)
        shared = [jnp.arange(9.0) for _ in range(20)]
        def work(number):
            for i, x in enumerate(shared):
                f(np.ones(number + i % 3 + 1)), xlamini.grad(lambda x: (x * x).sum())(jnp.ones(number + 1))
                try:
                    give(x)
                except (DeletedArrayError, JaxRuntimeError, ValueError):
                    failed.append(i)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert len(failed) == 60
    """,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_process_survives(program: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
