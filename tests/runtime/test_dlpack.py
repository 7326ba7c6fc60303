"""DLPack both ways: memory is shared where it can be, and outlives its owner; what cannot be shared is copied."""
from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, dlpack, numpy as jnp
from xlamini.errors import DeletedArrayError, TracerArrayConversionError
from xlamini.runtime.arrays import dlpack_devices
from xlamini.runtime.versions import DLPACK_VERSION

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 float16 float32 complex64".split()


def aligned(values: Any) -> np.ndarray:
    """An ndarray whose memory begins where XLA wants it."""
    source = np.asarray(values)
    room = np.empty(source.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    found = room[start : start + source.nbytes].view(source.dtype).reshape(source.shape)
    found[...] = source
    return found


def pointer(x: Any) -> int:
    return x.ctypes.data if isinstance(x, np.ndarray) else x.unsafe_buffer_pointer()


# NumPy.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_numpy_shares_both_ways(dtype: str, shape: tuple[int, ...]) -> None:
    values = aligned(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype))
    found = dlpack.from_dlpack(values, copy=False)
    assert (found.dtype, found.shape) == (values.dtype, shape)
    np.testing.assert_array_equal(np.asarray(found), values)
    back = np.from_dlpack(found)
    assert not values.size or pointer(back) == pointer(found) == pointer(values)


def test_what_is_written_shows() -> None:
    values = aligned(np.arange(4.0, dtype=np.float32))
    shared, copied = dlpack.from_dlpack(values), dlpack.from_dlpack(values, copy=True)
    values[0] = 7
    assert (shared.tolist(), copied.tolist()) == ([7, 1, 2, 3], [0, 1, 2, 3])


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_transposed_arrays(axes: tuple[int, ...]) -> None:
    values = aligned(np.arange(24, dtype=np.float32).reshape(2, 3, 4)).transpose(axes)
    found = dlpack.from_dlpack(values)
    np.testing.assert_array_equal(np.asarray(found), values)
    np.testing.assert_array_equal(found.sum(1), values.sum(1))  # a program that took the memory as it is would err
    shared = dlpack.from_dlpack(values, copy=False)
    assert pointer(shared) == pointer(values)
    np.testing.assert_array_equal(shared.sum(1), values.sum(1))


@pytest.mark.parametrize(
    "take", [lambda x: x[1:5], lambda x: x[::2], lambda x: x[::-1], lambda x: x.reshape(4, 4)[:, 1]]
)
def test_what_must_be_copied(take: Any) -> None:
    values = take(aligned(np.arange(16, dtype=np.float32)))
    np.testing.assert_array_equal(dlpack.from_dlpack(values), values)
    with pytest.raises(ValueError, match="from_dlpack: this array must be copied, but copy=False"):
        dlpack.from_dlpack(values, copy=False)


def test_read_only_arrays() -> None:
    values = aligned(np.arange(4, dtype=np.float32))
    values.flags.writeable = False
    assert dlpack.from_dlpack(values).tolist() == [0, 1, 2, 3]
    if DLPACK_VERSION is None:
        with pytest.raises(ValueError, match=r"must be copied, but copy=False: .*readonly"):
            dlpack.from_dlpack(values, copy=False)
    else:
        assert pointer(dlpack.from_dlpack(values, copy=False)) == pointer(values)


def test_wide_values() -> None:
    values = aligned(np.arange(3))
    assert dlpack.from_dlpack(values).dtype == np.int32
    with pytest.raises(ValueError, match=r"int64 becomes int32 while enable_x64 is off, .*jax_enable_x64"):
        dlpack.from_dlpack(values, copy=False)
    with xlamini.enable_x64(True):
        assert pointer(dlpack.from_dlpack(values, copy=False)) == pointer(values)


class Owner(np.ndarray):
    """An ndarray whose end can be watched."""


@pytest.mark.full
def test_memory_outlives_its_owner() -> None:
    values = aligned(np.arange(1000, dtype=np.float32)).view(Owner)
    watched = weakref.ref(values)
    shared = dlpack.from_dlpack(values, copy=False)
    del values
    gc.collect()
    assert float(shared.sum()) == 499500.0
    del shared
    gc.collect()
    assert watched() is None


@pytest.mark.full
def test_arrays_outlive_their_array() -> None:
    x = jnp.arange(1000.0)
    back = np.from_dlpack(x)
    del x
    gc.collect()
    junk = [jnp.full(1000, 5.0) for _ in range(10)]
    assert back.sum() == 499500.0 and junk


def test_donation_leaves_the_memory_of_others_alone() -> None:
    values = aligned(np.arange(1024, dtype=np.float32))
    shared = dlpack.from_dlpack(values, copy=False)
    result = xlamini.jit(lambda x: x + 1, donate_argnums=0)(shared)
    assert shared.is_deleted() and values[:2].tolist() == [0, 1] and result[:2].tolist() == [1, 2]


def test_arrays_of_jit_grad_and_vmap_take_part() -> None:
    values = aligned(np.arange(4, dtype=np.float32))
    shared = dlpack.from_dlpack(values)
    assert xlamini.grad(lambda x: jnp.sum(x**2))(shared).tolist() == [0, 2, 4, 6]
    assert np.from_dlpack(xlamini.jit(xlamini.vmap(jnp.square))(shared)).tolist() == [0, 1, 4, 9]
    assert np.from_dlpack(xlamini.device_put(shared, xlamini.devices()[0])).tolist() == [0, 1, 2, 3]


# The arguments of __dlpack__.


def test_devices() -> None:
    x = jnp.arange(3.0)
    assert x.__dlpack_device__() == (1, 0)
    assert pointer(np.from_dlpack(x, device="cpu", copy=False)) == pointer(x) != pointer(np.from_dlpack(x, copy=True))
    with pytest.raises(BufferError, match=r"dl_device=\(2, 0\), but the array is on \(1, 0\), and there is no such"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="copy=False; leave out copy"):
        x.__dlpack__(dl_device=(2, 0), copy=False)
    found = dlpack.from_dlpack(np.ones(3, np.float32), device=xlamini.devices()[0])
    assert found.committed and found.devices() == {xlamini.devices()[0]}
    there = xlamini.sharding.NamedSharding(xlamini.make_mesh((1,), ("x",), devices=xlamini.devices()[1:2]), P("x"))
    moved = dlpack.from_dlpack(np.ones(3, np.float32), device=there)
    assert moved.devices() == {xlamini.devices()[1]} and moved.tolist() == [1, 1, 1]


def test_numbers_of_devices() -> None:
    assert dlpack_devices.device_of(1, 0) == dlpack_devices.device_of(3, 5) == xlamini.devices()[0]
    assert dlpack_devices.device_of(77, 0) is None


class Elsewhere:
    """An array on a device that is not here."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (7, 0)

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError


def test_arrays_elsewhere() -> None:
    with pytest.raises(TypeError, match="on a device of DLPack's kind 7, which is not here"):
        dlpack.from_dlpack(Elsewhere())


class Old:
    """An object of a library whose capsules have no version."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.values.__dlpack__(stream=stream)


def test_producers_without_versions() -> None:
    values = aligned(np.arange(4, dtype=np.float32))
    assert pointer(dlpack.from_dlpack(Old(values), copy=False)) == pointer(values)


def test_versions_are_answered() -> None:
    capsule = repr(jnp.arange(3.0).__dlpack__(max_version=(1, 0)))
    assert ("dltensor_versioned" in capsule) == (DLPACK_VERSION is not None)
    assert '"dltensor"' in repr(jnp.arange(3.0).__dlpack__())


def test_dtypes_that_dlpack_has_not() -> None:
    with pytest.raises(BufferError, match=r"int4\[3\] has no DLPack form: .*; convert it with astype"):
        jnp.zeros(3, "int4").__dlpack__()


def test_traced_values_have_no_memory() -> None:
    with pytest.raises(TracerArrayConversionError, match=r"The memory of a traced value .* argument 'x'"):
        xlamini.jit(lambda x: np.from_dlpack(x))(1.0)
    with pytest.raises(TracerArrayConversionError, match=r"xlamini\.numpy in place of the other library"):
        xlamini.jit(lambda x: dlpack.from_dlpack(x))(1.0)
    with pytest.raises(TracerArrayConversionError, match="depends on the argument 'x', and a number has no derivative"):
        xlamini.grad(lambda x: x * float(np.from_dlpack(x)))(3.0)


# PyTorch.


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "float8_e4m3fn"])
def test_torch_shares_both_ways(torch: Any, dtype: str) -> None:
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    tensor = torch.from_dlpack(x)
    assert (tensor.dtype, tensor.data_ptr(), tensor.shape) == (getattr(torch, dtype), pointer(x), (2, 3))
    back = dlpack.from_dlpack(tensor, copy=False)
    assert (pointer(back), back.dtype) == (pointer(x), x.dtype)
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x))


def test_torch_writes_show(torch: Any) -> None:
    tensor = torch.arange(64.0)
    shared = dlpack.from_dlpack(tensor)
    tensor[3] = 100
    assert pointer(shared) == tensor.data_ptr() and float(shared[3]) == 100


def test_torch_and_its_tensors_end_first(torch: Any) -> None:
    shared = dlpack.from_dlpack(torch.arange(1000.0))
    kept = torch.from_dlpack(jnp.arange(1000.0))
    gc.collect()
    assert float(shared.sum()) == float(kept.sum()) == 499500.0


def test_torch_shapes_and_layouts(torch: Any) -> None:
    assert dlpack.from_dlpack(torch.zeros(0, 3)).shape == torch.from_dlpack(jnp.zeros((0, 3))).shape == (0, 3)
    tensor = torch.arange(6.0).reshape(2, 3)
    for view in (tensor.T, tensor[:, 1:], tensor[0].expand(4, 3), tensor.to(torch.bfloat16).T):
        np.testing.assert_array_equal(np.asarray(dlpack.from_dlpack(view)).astype("f"), view.float().numpy())
    assert torch.from_dlpack(jnp.arange(6.0).reshape(2, 3).T).shape == (3, 2)
    assert torch.from_dlpack(jnp.arange(3.0), copy=True).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda torch: torch.ones(3, requires_grad=True), "from_dlpack: .*detach"),
        (lambda torch: torch.ones(3, dtype=torch.complex64).conj(), "from_dlpack: .*conjugate"),
        (lambda torch: torch.ones(3, 3).to_sparse(), "from_dlpack: .*strided"),
        (lambda torch: torch.ones(8, dtype=torch.bfloat16)[::2], "contiguous"),
    ],
)
def test_torch_tensors_that_cannot_be_shared(torch: Any, make: Any, said: str) -> None:
    with pytest.raises(BufferError, match=said):
        dlpack.from_dlpack(make(torch))


# Arrays that are deleted or donated while another library shares them.


@pytest.mark.parametrize("share", [np.from_dlpack, dlpack.from_dlpack, memoryview, np.asarray])
def test_the_sharer_keeps_the_memory_of_a_deleted_array(share: Any) -> None:
    x = jnp.arange(3.0) + 0
    shared = share(x)
    x.delete()
    assert x.is_deleted()
    with pytest.raises(DeletedArrayError, match="deleted or donated"):
        x + 1
    np.testing.assert_array_equal(np.asarray(shared), [0, 1, 2])


@pytest.mark.parametrize("share", [np.from_dlpack, np.asarray])
def test_the_sharer_keeps_the_memory_of_a_donated_array(share: Any) -> None:
    x = jnp.arange(3.0) + 0
    shared = share(x)
    np.testing.assert_array_equal(xlamini.jit(lambda x: x + 1, donate_argnums=0)(x), [1, 2, 3])
    np.testing.assert_array_equal(shared, [0, 1, 2])


def test_a_capsule_that_nobody_takes_outlives_its_array() -> None:
    x = jnp.arange(3.0) + 0
    capsule = x.__dlpack__()
    x.delete()
    del capsule
