"""The public function `platform_dependent`: a branch per platform, chosen when the program is lowered."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from xlamini.core import Primitive, ShapedArray, disable_jit
from xlamini.core.tracing.state import state
from xlamini.runtime.devices.platforms import default_backend
from xlamini.transforms.cond.api import applied
from xlamini.transforms.cond.primitive import INT32, index_of_platform
from xlamini.transforms.cond.trace_branches import check_branches, trace_branches

Platforms = tuple[tuple[str, ...] | None, ...]
"""The platforms of each branch; None is the default branch."""


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """`per_platform[p](*args)` on the platform p that the program is lowered for, `default(*args)` on any other.

    Platforms are `cpu`, `cuda`, `rocm` and `tpu`. All functions are traced, and must return the same structure, shapes
    and dtypes (else TypeError); the compiled program contains only the branch of its platform. NotImplementedError if
    neither that branch nor a default exists.

    >>> platform_dependent(2.0, cpu=lambda x: x + 1, default=lambda x: x + 2)
    Array(3., dtype=float32, weak_type=True)
    """
    branches = dict(_grouped(per_platform, default))
    check_branches("platform_dependent", {_label(names): fun for names, fun in branches.items()})
    platforms = tuple(branches)
    if disable_jit.value and state.builder is None:
        return branches[platforms[index_of_platform(platforms, default_backend())]](*args)
    if platforms == (None,):
        return branches[None](*args)
    traced = trace_branches("platform_dependent", {_label(names): fun for names, fun in branches.items()}, args)
    return applied(traced, _index_of_platform, platforms, branches_platforms=platforms)


def _index_of_platform(platforms: Platforms) -> Any:
    return platform_index_p.bind(platforms=platforms)


def _grouped(
    per_platform: Mapping[str, Callable[..., Any]], default: Callable[..., Any] | None
) -> Iterator[tuple[tuple[str, ...] | None, Callable[..., Any]]]:
    """Each distinct function with its platforms; the default branch comes last."""
    _check_platforms(per_platform, default)
    names: dict[int, tuple[str, ...]] = {}
    for name, fun in per_platform.items():
        names[id(fun)] = (*names.get(id(fun), ()), name)
    by_id = {id(fun): fun for fun in per_platform.values()}
    yield from ((group, by_id[key]) for key, group in names.items())
    if default is not None:
        yield None, default


def _check_platforms(per_platform: Mapping[str, Any], default: Any) -> None:
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: 'gpu' could be two platforms; name 'cuda' or 'rocm', or both")
    if not per_platform and default is None:
        raise ValueError("platform_dependent: give a function for a platform, such as cpu=f, or default=f")


def _label(names: tuple[str, ...] | None) -> str:
    return "default" if names is None else "/".join(names)


class PlatformIndex(Primitive):
    """The branch index for the platform that the program is lowered for."""

    name = "platform_index"
    lacks: Mapping[str, str] = {"jvp": "it has no operands", "batch": "it has no operands"}

    def shape_rule(self, *, platforms: Platforms) -> ShapedArray:
        return ShapedArray((), INT32)

    def lower(self, ctx: Any, *, platforms: Platforms) -> Any:
        return ctx.constant(index_of_platform(platforms, ctx.platform), ctx.aval_out)


platform_index_p: Final = PlatformIndex()
