"""A program that is compiled for targets: a function, the shapes and dtypes of its arguments, and what it donates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Spec:
    """The shape and dtype of an array, whichever library makes it."""

    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Program:
    """A function of pytrees of `Spec`, and the positions of the arguments that it may overwrite."""

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    donated: tuple[int, ...] = ()

    def arguments(self, jax: ModuleType, make: Callable[[Spec], Any]) -> Any:
        """The arguments, with what `make` gives for each `Spec`."""
        return jax.tree.map(make, self.args, is_leaf=lambda x: isinstance(x, Spec))

    def types(self, jax: ModuleType) -> Any:
        """The arguments' types."""
        return self.arguments(jax, lambda spec: jax.ShapeDtypeStruct(spec.shape, spec.dtype))


def f32(*shape: int) -> Spec:
    """A float32 array."""
    return Spec(shape)


def bf16(*shape: int) -> Spec:
    """A bfloat16 array."""
    return Spec(shape, "bfloat16")


def i32(*shape: int) -> Spec:
    """An int32 array."""
    return Spec(shape, "int32")


def each(functions: Mapping[str, Callable[..., Any]], *args: Any, prefix: str = "", suffix: str = "") -> list[Program]:
    """Several functions of the same arguments."""
    return [Program(f"{prefix}{name}{suffix}", fun, args) for name, fun in functions.items()]
