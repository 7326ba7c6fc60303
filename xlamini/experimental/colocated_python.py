"""Python on the hosts of devices: functions and objects that run where their arguments are, on CPU devices.

    cpu = colocated_cpu_devices(xlamini.devices())

    @colocated_python
    def halved(x):
        return x / 2

    halved(xlamini.device_put(x, cpu[0]))

Here that is the process itself: its CPU devices share their memory with Python, so that a function is called at once.
What is checked is what holds for other hosts too, so that a program which works here works there: arguments and results
are arrays, arguments are on CPU devices, and a function without arguments is told its devices.
"""
from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from xlamini.core import flatten_from_user, unflatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.sharding.abstract_mesh import AxesOfMesh
from xlamini.runtime import ArrayImpl
from xlamini.runtime.devices.platforms import Device, devices as devices_of
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.staging import check_callable, name_of
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def __dir__() -> list[str]:
    return sorted(__all__)


@overload
def colocated_cpu_devices(devices_or_mesh: Mesh) -> Mesh: ...
@overload
def colocated_cpu_devices(devices_or_mesh: Sequence[Device]) -> Sequence[Device]: ...
@api_boundary
def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices on the hosts of these devices, one for each in their order; or the mesh of these.

    CPU devices are their own. ValueError if a process has too few: set `num_cpu_devices` in the config.

    >>> cpu = xlamini.devices("cpu")[:1]
    >>> colocated_cpu_devices(cpu) == cpu
    True
    >>> colocated_cpu_devices(xlamini.sharding.Mesh(cpu, ("x",))).axis_names
    ('x',)
    """
    if isinstance(devices_or_mesh, AxesOfMesh):
        mesh: Any = devices_or_mesh
        found = _on_hosts(list(mesh.devices.flat))
        return mesh.update(devices=np.array(found, object).reshape(mesh.axis_sizes))
    return _on_hosts(list(devices_or_mesh))


def _on_hosts(devices: list[Device]) -> list[Device]:
    if all(device.platform == "cpu" for device in devices):
        return devices
    free: dict[int, list[Device]] = defaultdict(list)
    for device in devices_of("cpu"):
        free[device.process_index].append(device)
    found = []
    for device in devices:
        if not free[device.process_index]:
            raise ValueError(
                f"colocated_cpu_devices: process {device.process_index} has fewer CPU devices than the {len(devices)} "
                f'devices; first call xlamini.config.update("num_cpu_devices", {len(devices)})'
            )
        found.append(free[device.process_index].pop(0))
    return found


class ColocatedFunction:
    """A function that runs where its arguments are; see `colocated_python`."""

    def __init__(self, fun: Callable[..., Any], in_specs: Any = None, out_specs: Any = None, devices: Any = None):
        self._fun, self._in_specs, self._out_specs_fn, self._devices = fun, in_specs, out_specs, devices
        functools.update_wrapper(self, fun)

    def specialize(
        self,
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        devices: Sequence[Device] | None = None,
    ) -> ColocatedFunction:
        """The same function with more of its options, each of which can be given once.

        Args:
          in_specs: the types of the arguments, as a pair of positional and keyword ones: `((spec,), {})`. A call with
            others is a TypeError.
          out_specs_fn: from the types of the arguments, as positional and keyword ones, those of the results; results
            of others are a TypeError.
          devices: where it runs, which a function without arguments needs.
        """
        given = {"in_specs": in_specs, "out_specs_fn": out_specs_fn, "devices": devices}
        known = {"in_specs": self._in_specs, "out_specs_fn": self._out_specs_fn, "devices": self._devices}
        for name, value in given.items():
            if value is not None and known[name] is not None:
                raise ValueError(f"specialize: {name} of {name_of(self._fun)} is given already; give it once")
            known[name] = known[name] if value is None else value
        return ColocatedFunction(self._fun, *known.values())

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten_from_user((args, kwargs))
        specs = [self._spec("arguments", x) for x in leaves]
        self._check_place(leaves)
        self._check_types("in_specs", self._in_specs, unflatten(tree, specs))
        out = self._fun(*args, **kwargs)
        outs, out_tree = flatten_from_user(out)
        out_specs = [self._spec("results", x) for x in outs]
        if self._out_specs_fn is not None:
            in_args, in_kwargs = unflatten(tree, specs)
            due = self._out_specs_fn(*in_args, **in_kwargs)
            self._check_types("out_specs_fn", due, unflatten(out_tree, out_specs))
        return out

    def _spec(self, what: str, x: Any) -> ShapeDtypeStruct:
        if not isinstance(x, ArrayImpl):
            raise TypeError(
                f"colocated_python: {what} of {name_of(self._fun)} must be arrays on CPU devices, got a "
                f"{type(x).__name__}; use xlamini.device_put(x, device)"
            )
        return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)

    def _check_place(self, leaves: Sequence[Any]) -> None:
        places = {frozenset(x.sharding.device_set) for x in leaves}
        if self._devices is not None:
            places.add(frozenset(self._devices))
        if not places:
            raise ValueError(
                f"colocated_python: {name_of(self._fun)} has no arguments that say where it runs; give its devices "
                "with .specialize(devices=...)"
            )
        if len(places) > 1:
            raise ValueError(f"colocated_python: arguments of {name_of(self._fun)} are on different devices: {places}")
        if any(device.platform != "cpu" for device in next(iter(places))):
            raise ValueError(
                f"colocated_python: {name_of(self._fun)} runs on CPU devices; move its arguments to those of "
                "colocated_cpu_devices(devices)"
            )

    def _check_types(self, name: str, due: Any, found: Any) -> None:
        if due is None:
            return
        (expected, tree), (actual, other) = flatten_from_user(due), flatten_from_user(found)
        same = all((a.shape, a.dtype) == (b.shape, b.dtype) for a, b in zip(expected, actual, strict=False))
        if tree != other or not same:
            raise TypeError(f"colocated_python: {name} of {name_of(self._fun)} says {due}, but there is {found}")


def colocated_python(fun: Callable[..., Any]) -> ColocatedFunction:
    """The function `fun`, to run in Python where its arguments are. A decorator.

    Arguments and results are arrays, or containers of them. A function without arguments needs
    `.specialize(devices=...)`. TypeError and ValueError for what other hosts could not be given.

    >>> @colocated_python
    ... def halved(x):
    ...     return x / 2
    >>> halved(xlamini.device_put(3.0, xlamini.devices("cpu")[0]))
    Array(1.5, dtype=float32, weak_type=True)
    >>> ones = colocated_python(lambda: xlamini.numpy.ones(2))
    >>> ones.specialize(devices=xlamini.devices("cpu")[:1])()
    Array([1., 1.], dtype=float32)
    """
    check_callable("colocated_python", fun)
    return ColocatedFunction(fun)


def colocated_python_class(cls: type) -> type:
    """The class `cls`, whose objects live where the arguments of their methods are. A decorator.

    An object is made when a method is first called, with the arguments that were given to the class, and lives as long
    as the object that stands for it. Its methods are functions as `colocated_python` makes them.

    >>> @colocated_python_class
    ... class Total:
    ...     def __init__(self, start):
    ...         self.total = start
    ...     def add(self, x):
    ...         self.total = self.total + x
    ...         return self.total
    >>> total, x = Total(1.0), xlamini.device_put(2.0, xlamini.devices("cpu")[0])
    >>> total.add(x), total.add(x)
    (Array(3., dtype=float32, weak_type=True), Array(5., dtype=float32, weak_type=True))
    """
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class: cls must be a class, got {cls!r}")

    def remember(self: Any, *args: Any, **kwargs: Any) -> None:
        self._make, self._objects = functools.partial(cls, *args, **kwargs), []

    methods = [name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("__")]
    body = {name: functools.cached_property(_method(getattr(cls, name))) for name in methods}
    names = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    standing = type(cls.__name__, (), {"__init__": remember, **names, **body})
    for name, method in body.items():
        method.__set_name__(standing, name)
    return standing


def _method(method: Callable[..., Any]) -> Callable[[Any], ColocatedFunction]:
    def bound(self: Any) -> ColocatedFunction:
        @functools.wraps(method)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not self._objects:
                self._objects.append(self._make())
            return method(self._objects[0], *args, **kwargs)

        return ColocatedFunction(called)

    return bound
