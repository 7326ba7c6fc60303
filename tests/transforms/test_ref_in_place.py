"""A jitted function writes a ref in place; what somebody has read of it, or shares its memory, stays as it was."""
from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.ref import free_ref, new_ref

SIZE = 1000


@xlamini.jit
def put(ref: Any, i: Any, x: Any) -> None:
    ref[i] = x


@xlamini.jit
def total(ref: Any) -> Any:
    return ref[...].sum()


def address(ref: Any) -> int:
    return ref.unsafe_buffer_pointer()


def zeros() -> Any:
    return new_ref(jnp.zeros(SIZE))


def expected(**written: float) -> np.ndarray:
    out = np.zeros(SIZE, np.float32)
    for place, value in written.items():
        out[int(place[1:])] = value
    return out


def test_a_write_stays_in_its_place() -> None:
    ref = zeros()
    put(ref, 0, 1.0)
    places = set()
    for i in range(1, 5):
        put(ref, i, float(i))
        places.add(address(ref))
    assert len(places) == 1
    np.testing.assert_array_equal(ref[...], expected(_0=1, _1=1, _2=2, _3=3, _4=4))


def test_a_ref_that_is_closed_over_is_written_in_place() -> None:
    ref = zeros()

    @xlamini.jit
    def add(x: Any) -> Any:
        ref[3] += x
        return x * 2

    add(1.0)
    before = address(ref)
    assert add(2.0) == 4 and add(3.0) == 6
    assert address(ref) == before and ref[3] == 6


SHARING: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "in a list": lambda x: [x][0],
    "numpy": np.asarray,
    "memoryview": memoryview,
    "dlpack": np.from_dlpack,
    "device_put": lambda x: xlamini.device_put(x, x.devices().pop()),
    "shard": lambda x: x.addressable_shards[0].data,
    "addressable_data": lambda x: x.addressable_data(0),
    "asarray": jnp.asarray,
    "assembled": lambda x: xlamini.make_array_from_single_device_arrays(x.shape, x.sharding, [x]),
    "closure": lambda x: (lambda: x)(),
}


@pytest.mark.parametrize("how", SHARING)
@pytest.mark.parametrize("closed", [False, True])
def test_what_was_read_stays_as_it_was(how: str, closed: bool) -> None:
    ref = zeros()

    @xlamini.jit
    def write(x: Any) -> None:
        ref[1] = x

    write_to = write if closed else lambda x: put(ref, 1, x)
    write_to(1.0)
    kept = SHARING[how](ref[...])
    write_to(2.0)
    write_to(3.0)
    np.testing.assert_array_equal(np.asarray(kept), expected(_1=1))
    np.testing.assert_array_equal(ref[...], expected(_1=3))


def test_a_value_that_is_held_no_more_is_not_copied() -> None:
    ref = zeros()
    put(ref, 1, 1.0)
    before = address(ref)
    kept = ref[...]
    put(ref, 1, 2.0)
    moved = address(ref)
    assert moved != before
    del kept
    for _ in range(3):
        _ = ref[...] + 1
        put(ref, 1, 3.0)
    assert address(ref) == moved


def test_reads_copy_nothing() -> None:
    ref, other = zeros(), zeros()
    kept = ref[...]

    @xlamini.jit
    def move(source: Any, target: Any) -> None:
        target[...] = source[...] * 2

    for _ in range(3):
        assert total(ref) == 0
        move(ref, other)
        assert ref[...] is kept


def test_a_value_captured_by_another_function_stays() -> None:
    ref = zeros()
    put(ref, 0, 5.0)
    f = xlamini.jit(functools.partial(lambda kept, y: kept[0] + y, ref[...]))
    assert f(1.0) == 6
    put(ref, 0, 7.0)
    assert f(1.0) == 6


def test_an_argument_of_the_same_array() -> None:
    ref = zeros()

    @xlamini.jit
    def add(ref: Any, x: Any) -> Any:
        ref[...] += x + 1
        return x.sum()

    for expected_sum in (0, SIZE, 3 * SIZE):
        assert add(ref, ref[...]) == expected_sum


def test_two_refs_of_one_type_keep_their_places() -> None:
    a, b = zeros(), zeros()

    @xlamini.jit
    def write(refs: Any, x: Any) -> Any:
        refs["b"][0] = x
        refs["a"][1] = refs["b"][0] * 2
        return refs["a"][...] + 1

    write({"a": a, "b": b}, 1.0)
    places = address(a), address(b)
    out = write({"a": a, "b": b}, 2.0)
    assert (address(a), address(b)) == places and a[1] == 4 and b[0] == 2 and out[1] == 5


def test_swapped_values() -> None:
    a, b = new_ref(jnp.arange(3.0)), new_ref(jnp.ones(3))

    @xlamini.jit
    def swap(a: Any, b: Any) -> None:
        a[...], b[...] = b[...], a[...]

    for _ in range(3):
        swap(a, b)
    assert a[...].tolist() == [1, 1, 1] and b[...].tolist() == [0, 1, 2]


def test_refs_of_both_kinds() -> None:
    closed, given = zeros(), zeros()

    @xlamini.jit
    def write(ref: Any, x: Any) -> Any:
        closed[0] += x
        ref[1] += closed[0]
        return ref[1]

    assert [float(write(given, 1.0)) for _ in range(3)] == [1, 3, 6]
    places = address(closed), address(given)
    assert write(given, 1.0) == 10 and (address(closed), address(given)) == places
    kept = given[...], closed[...]
    write(given, 1.0)
    assert kept[0][1] == 10 and kept[1][0] == 4 and closed[0] == 5 and given[1] == 15


@pytest.mark.full
def test_a_function_that_touches_another_ref_in_each_call() -> None:
    refs = [zeros() for _ in range(3)]
    current = [0]

    @xlamini.jit
    def add(x: Any) -> None:
        refs[current[0]][0] += x

    for current[0] in (0, 1, 2, 0):
        add(1.0)
        xlamini.clear_caches()
    assert [float(r[0]) for r in refs] == [2, 1, 1]


def test_a_freed_ref_is_an_error_in_the_next_call() -> None:
    ref = zeros()

    @xlamini.jit
    def write(x: Any) -> None:
        ref[0] = x

    write(1.0)
    free_ref(ref)
    with pytest.raises(ValueError, match="used after free_ref"):
        write(2.0)


def test_a_function_keeps_no_ref_alive() -> None:
    def use() -> weakref.ref[Any]:
        ref = zeros()
        write = xlamini.jit(lambda x: ref.__setitem__(0, x))
        write(1.0)
        write(2.0)
        return weakref.ref(ref.cell)

    cell = use()
    gc.collect()
    assert cell() is None


def test_a_signature_that_writes_where_another_reads() -> None:
    ref = zeros()

    @xlamini.jit
    def maybe(ref: Any, x: Any) -> Any:
        if x.dtype == "int32":
            ref[0] = x.astype("float32")
        return ref[...].sum()

    kept = ref[...]
    assert maybe(ref, jnp.float32(1)) == 0 and ref[...] is kept
    assert maybe(ref, jnp.int32(4)) == 4 and kept[0] == 0
    assert maybe(ref, jnp.float32(1)) == 4


def test_a_program_with_effects_keeps_the_value_until_it_is_over() -> None:
    ref = zeros()

    def refuse(x: Any) -> None:
        if x > 1:
            raise ValueError("too large")

    @xlamini.jit
    def write(ref: Any, x: Any) -> None:
        xlamini.debug.callback(refuse, x)
        ref[0] = x

    write(ref, 1.0)
    with pytest.raises(Exception, match="too large"):
        write(ref, 2.0)
        xlamini.effects_barrier()
    assert np.isfinite(np.asarray(ref[...])).all()


def test_in_loops_branches_and_derivatives() -> None:
    ref = zeros()

    @xlamini.jit
    def run(ref: Any, xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            ref[0] += x
            return carry + ref[0], None

        carry, _ = lax.scan(body, 0.0, xs)
        lax.cond(carry > 0, lambda: ref.__setitem__(1, carry), lambda: None)
        slope = xlamini.grad(lambda x: x * ref[1])(1.0)
        return carry, slope

    xs = jnp.arange(4.0)
    run(ref, xs)
    place = address(ref)
    carry, slope = run(ref, xs)
    assert address(ref) == place
    assert ref[0] == 12 and carry == 4 * 6 + 10 and slope == carry and ref[1] == carry


def test_with_other_options_of_jit() -> None:
    ref, x = zeros(), jnp.ones(SIZE)

    def write(ref: Any, x: Any, mode: str, y: Any = 0.0) -> Any:
        ref[...] = x * (2 if mode == "double" else 1) + y
        return x + 1

    f = xlamini.jit(write, static_argnames="mode", donate_argnums=1)
    out = f(ref, x, "double", y=1.0)
    assert x.is_deleted() and ref[0] == 3 and out[0] == 2
    out = f(ref, out, mode="once")
    assert ref[0] == 2 and out[0] == 3


def test_keys_and_low_precision() -> None:
    key = new_ref(xlamini.random.key(0))
    half = new_ref(jnp.zeros(4, "bfloat16"))

    @xlamini.jit
    def draw(key: Any, half: Any) -> Any:
        key[...], sub = xlamini.random.split(key[...])
        half[1] += 0.5
        return xlamini.random.normal(sub)

    kept = key[...], half[...]
    first, second = draw(key, half), draw(key, half)
    assert first != second and half[...].astype("float32").tolist() == [0, 1, 0, 0]
    assert kept[0] == xlamini.random.key(0) and kept[1][1] == 0


def test_under_other_transformations() -> None:
    ref = zeros()

    @xlamini.jit
    def outer(x: Any) -> Any:
        put(ref, 2, x)
        return ref[2] + 1

    assert outer(1.0) == 2 and outer(2.0) == 3 and ref[2] == 2
    kept = ref[...]
    assert xlamini.vmap(lambda x: total(ref) + x)(jnp.arange(2.0)).tolist() == [2, 3]
    assert xlamini.make_jaxpr(outer)(1.0) is not None and ref[...] is kept


def test_under_debug_nans() -> None:
    ref = zeros()
    with xlamini.debug_nans(True):
        put(ref, 0, 1.0)
        with pytest.raises(FloatingPointError):
            put(ref, 0, float("nan"))
    np.testing.assert_array_equal(ref[...], expected(_0=1))


ALIASES: dict[str, Callable[[Any], Any]] = {
    "device_put": lambda x: xlamini.device_put(x, xlamini.devices()[0]),
    "to one of a mesh": lambda x: xlamini.device_put(
        x, xlamini.NamedSharding(xlamini.make_mesh((1,), ("x",)), xlamini.P("x"))
    ),
    "may alias": lambda x: xlamini.device_put(x, xlamini.devices()[0], may_alias=True),
    "to_device": lambda x: x.to_device(xlamini.devices()[0]),
    "assembled": lambda x: xlamini.make_array_from_single_device_arrays(x.shape, x.sharding, [x]),
    "from callback": lambda x: xlamini.make_array_from_callback(x.shape, x.sharding, lambda i: x),
    "over devices": lambda x: xlamini.device_put(
        x, xlamini.NamedSharding(xlamini.make_mesh((8,), ("x",)), xlamini.P())
    ),
}


@pytest.mark.parametrize("how", ALIASES)
def test_what_was_written_stays_as_it_was(how: str) -> None:
    x, ref = jnp.zeros(SIZE), zeros()
    ref[...] = ALIASES[how](x)
    put(ref, 1, 1.0)
    put(ref, 1, 2.0)
    np.testing.assert_array_equal(x, expected())
    assert ref[1] == 2


def test_one_array_in_two_refs() -> None:
    a, b = zeros(), zeros()
    put(a, 0, 1.0)
    b[...] = a[...]
    put(b, 0, 2.0)
    put(a, 1, 3.0)
    np.testing.assert_array_equal(a[...], expected(_0=1, _1=3))
    np.testing.assert_array_equal(b[...], expected(_0=2))


@pytest.mark.parametrize("loop", ["fori", "scan", "cond", "vmap", "grad", "checkpoint"])
def test_a_jitted_write_inside_of_what_closes_over_the_ref(loop: str) -> None:
    ref, once = zeros(), lambda: put(ref, 2, ref[2] + 1.0)
    runs: dict[str, Callable[[], Any]] = {
        "fori": lambda: lax.fori_loop(0, 3, lambda i, c: (once(), c)[1], 0.0),
        "scan": lambda: lax.scan(lambda c, x: (once(), (c, x))[1], 0.0, jnp.arange(3)),
        "cond": lambda: [lax.cond(jnp.bool_(True), once, lambda: None) for _ in range(3)],
        "vmap": lambda: [xlamini.vmap(lambda x: (once(), x)[1])(jnp.ones(2)) for _ in range(3)],
        "grad": lambda: [xlamini.grad(lambda x: (once(), x)[1])(1.0) for _ in range(3)],
        "checkpoint": lambda: [xlamini.checkpoint(lambda x: (once(), x)[1])(1.0) for _ in range(3)],
    }
    runs[loop]()
    assert ref[2] == 3


def test_an_error_of_a_python_function_leaves_the_value() -> None:
    def refuse(x: Any) -> Any:
        if x > 1:
            raise ValueError("too large")
        return np.float32(x)

    @xlamini.jit
    def add(ref: Any, x: Any) -> None:
        ref[...] += xlamini.pure_callback(refuse, xlamini.ShapeDtypeStruct((), "float32"), x)

    ref = new_ref(jnp.zeros(3))
    with pytest.raises(Exception, match="too large"):
        add(ref, 2.0)
    add(ref, 1.0)
    assert ref[...].tolist() == [1, 1, 1]


def test_a_signature_that_touches_no_ref_runs_in_cpp() -> None:
    ref = zeros()

    @functools.partial(xlamini.jit, static_argnames="touches")
    def f(x: Any, touches: bool = False) -> Any:
        if touches:
            ref[0] += x
        return x + 1

    f(1.0, touches=True)
    assert f(1.0) == 2
    with xlamini.no_tracing(True):
        free_ref(ref)
        assert f(1.0) == 2


def test_the_shardings_of_a_function_that_closes_over_a_ref() -> None:
    sharding = xlamini.NamedSharding(xlamini.make_mesh((8,), ("x",)), xlamini.P("x"))
    ref = new_ref(xlamini.device_put(jnp.zeros(8), sharding))

    @functools.partial(xlamini.jit, in_shardings=(sharding,), out_shardings=sharding)
    def add(x: Any) -> Any:
        ref[...] += x
        return x * 2

    for _ in range(2):
        assert add(jnp.ones(8)).sharding == sharding
    assert ref[...].tolist() == [2.0] * 8


def test_threads_that_read_a_ref_while_another_writes_it() -> None:
    ref, errors = zeros(), list[Exception]()
    is_over = threading.Event()

    @xlamini.jit
    def add(ref: Any, x: Any) -> None:
        ref[...] += x

    def read() -> None:
        try:
            while not is_over.is_set():
                row = np.asarray(ref[...])
                assert row.min() == row.max()
                total(ref).block_until_ready()
        except Exception as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(200):
        add(ref, 1.0)
    is_over.set()
    for reader in readers:
        reader.join()
    assert errors == [] and ref[0] == 200


def test_a_call_that_fails_leaves_the_value() -> None:
    ref = zeros()

    @xlamini.jit
    def write(ref: Any, x: Any) -> None:
        ref[0] = x["a"]

    write(ref, {"a": 1.0})
    for wrong in ({"b": 1.0}, {"a": "text"}, {"a": jnp.ones(2)}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            write(ref, wrong)
    np.testing.assert_array_equal(ref[...], expected(_0=1))


def test_over_several_devices() -> None:
    mesh = xlamini.make_mesh((8,), ("x",))
    value = xlamini.device_put(jnp.zeros(SIZE), xlamini.NamedSharding(mesh, xlamini.P("x")))
    ref = new_ref(value)

    @xlamini.jit
    def add(ref: Any, x: Any) -> None:
        ref[...] += x

    kept = ref[...].addressable_shards[0].data
    for x in range(4):
        add(ref, float(x))
    assert kept[0] == 0 and ref[...].sharding == value.sharding
    np.testing.assert_array_equal(ref[...], np.full(SIZE, 6.0))
