"""Guards of transfers: each direction and level, with what JAX 0.10.2 does for the same programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp, random
from xlamini.errors import JaxRuntimeError
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec as P

LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
REFUSED = {"implicit": ("disallow", "disallow_explicit"), "explicit": ("disallow_explicit",), "none": ()}
LOGGED = {"implicit": ("log", "log_explicit"), "explicit": ("log_explicit",), "none": ()}
GUARDS = {"to device": xlamini.transfer_guard_host_to_device, "between": xlamini.transfer_guard_device_to_device}
N = np.ones(4, np.float32)


def programs() -> dict[str, tuple[str, str, Callable[[], Any]]]:
    """By name: the direction of a transfer, whether it is explicit, and a program that makes it."""
    first, second = xlamini.devices()[:2]
    split = NamedSharding(Mesh(np.array([first, second]), ("a",)), P("a"))
    x, there = xlamini.device_put(N, first), xlamini.device_put(N, second)
    free = jnp.zeros(4)
    f, g = xlamini.jit(lambda x: x + 1), xlamini.jit(lambda x: x * 2, in_shardings=split)
    return {
        "jit of an ndarray": ("to device", "implicit", lambda: f(N)),
        "jit of a number": ("to device", "implicit", lambda: f(2.0)),
        "jit with in_shardings": ("to device", "implicit", lambda: g(N)),
        "an operation on an ndarray": ("to device", "implicit", lambda: jnp.sin(N)),
        "asarray": ("to device", "implicit", lambda: jnp.asarray([1.0, 2.0])),
        "zeros": ("to device", "implicit", lambda: jnp.zeros(4)),
        "an index": ("to device", "implicit", lambda: x[0]),
        "random.key": ("to device", "implicit", lambda: random.key(0)),
        "device_put": ("to device", "explicit", lambda: xlamini.device_put(N, second)),
        "device_put over a mesh": ("to device", "explicit", lambda: xlamini.device_put(N, split)),
        "arange": ("to device", "none", lambda: jnp.arange(4)),
        "a number in an expression": ("to device", "none", lambda: x + 1),
        "jit splits an array": ("between", "implicit", lambda: g(free)),
        "device_put of an array": ("between", "explicit", lambda: xlamini.device_put(x, second)),
        "device_put of an array over a mesh": ("between", "explicit", lambda: xlamini.device_put(x, split)),
        "jit where the array is": ("between", "none", lambda: f(there)),
        "a copy": ("between", "none", lambda: jnp.copy(x)),
    }


PROGRAMS = programs()


@pytest.fixture(params=PROGRAMS)
def program(request):
    direction, kind, run = PROGRAMS[request.param]
    run()
    return direction, kind, run


@pytest.mark.parametrize("guarded", GUARDS)
def test_levels(program, guarded, capfd):
    direction, kind, run = program
    kind = kind if direction == guarded else "none"
    for level in LEVELS:
        capfd.readouterr()
        with GUARDS[guarded](level):
            if level in REFUSED[kind]:
                with pytest.raises(JaxRuntimeError, match=r"Disallowed .* transfer"):
                    run()
            else:
                run()
                logs = "transfer" in capfd.readouterr().err
                assert logs is (level in LOGGED[kind]), level
    run()


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_one_guard_for_all_directions(program, level):
    _, kind, run = program
    with xlamini.transfer_guard(level):
        if level in REFUSED[kind]:
            with pytest.raises(JaxRuntimeError, match=r"Disallowed .* transfer"):
                run()
        else:
            run()


@pytest.mark.parametrize("level", LEVELS)
def test_to_the_host(level):
    """A CPU's arrays are read where they are, so that nothing is transferred."""
    x = jnp.ones(3)
    with xlamini.transfer_guard_device_to_host(level):
        assert np.asarray(x * 2).tolist() == (x * 2).tolist() == xlamini.device_get(x * 2).tolist()
        assert (float((x * 2).sum()), (x * 2).sum().item(), bool((x * 2).sum() > 0)) == (6, 6, True)


def test_the_guard_for_devices_holds_by_way_of_the_host():
    """An array that is split goes through the host: the guard for transfers to devices has no say in it."""
    first, second = xlamini.devices()[:2]
    split = NamedSharding(Mesh(np.array([first, second]), ("a",)), P("a"))
    x = xlamini.device_put(N, first)
    with xlamini.transfer_guard_host_to_device("disallow_explicit"):
        assert xlamini.device_put(x, split).tolist() == [1] * 4
        with pytest.raises(JaxRuntimeError), xlamini.transfer_guard_device_to_device("disallow_explicit"):
            xlamini.device_put(x, split)
        with pytest.raises(JaxRuntimeError):
            xlamini.device_put(N, first)  # the outer guard is as it was


@pytest.mark.parametrize("made", [jnp.arange, lambda n: np.arange(n, dtype=np.float32)], ids=["array", "ndarray"])
def test_what_a_function_captures_is_part_of_its_program(made: Callable[[int], Any]) -> None:
    """Placing it is no transfer of the user's, at the first call as at later ones."""
    x, captured = jnp.arange(3), made(3)
    f = xlamini.jit(lambda x: x + captured)
    with xlamini.transfer_guard("disallow_explicit"):
        first, second = f(x), f(x)
    assert first.tolist() == second.tolist() == [0, 2, 4]
