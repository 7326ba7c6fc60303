"""Layouts: the order of an array's dimensions in memory, and formats, which are layouts with shardings."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from xlamini.runtime.sharding import Sharding


class AutoLayout:
    """The layout that the compiler chooses."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """The order of the dimensions in memory, the one with the largest stride first.

    Args:
      major_to_minor: the dimensions; (0, 1, 2) is row-major order.
      tiling: shapes of the tiles that the minor dimensions are stored in; None leaves them to the compiler.
      sub_byte_element_size_in_bits: the size of an element that is smaller than a byte; 0 for the dtype's.

    `Layout.AUTO` leaves the layout to the compiler. ValueError where `major_to_minor` is no permutation.

    >>> Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def __post_init__(self) -> None:
        order = tuple(self.major_to_minor)
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"Layout: major_to_minor must be a permutation of the dimensions, got {order}")
        object.__setattr__(self, "major_to_minor", order)
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """The layout that the runtime reports."""
        found = pjrt_layout._xla_layout()
        return Layout(found.minor_to_major()[::-1], found.tiling(), found.element_size_in_bits())

    @property
    def is_row_major(self) -> bool:
        """Whether the dimensions are in their own order."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor)))


@dataclass(frozen=True)
class Format:
    """A layout and a sharding, either of which may be left open with None.

    `device_put` and `jit` take it in place of a sharding. Arrays are in row-major order: another layout is a
    NotImplementedError there, while `with_layout_constraint` sets that of a value inside a program. TypeError for what
    is no layout or no sharding.

    >>> xlamini.numpy.ones((2, 3)).format.layout
    Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0)
    """

    layout: Layout | AutoLayout | None = None
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.layout, Layout | AutoLayout | None):
            raise TypeError(f"Format: layout must be a Layout, Layout.AUTO or None, got {self.layout!r}")
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(f"Format: sharding must be a sharding or None, got {self.sharding!r}")


def sharding_of(format: Format, what: str) -> Sharding | None:
    """The sharding of a format; NotImplementedError, whose message begins with `what`, for arrays of another layout."""
    if isinstance(format.layout, Layout) and not format.layout.is_row_major:
        raise NotImplementedError(
            f"{what} {format.layout}, but arrays are in row-major order; set the layout of a value inside a program, "
            "with experimental.layout.with_layout_constraint"
        )
    return format.sharding


def formats_of(layouts: Iterable[Any], shardings: Iterable[Any]) -> list[Format]:
    """The formats of a compiled program's arguments or results, from the layouts that the runtime reports."""
    return [Format(Layout.from_pjrt_layout(layout), s) for layout, s in zip(layouts, shardings, strict=False)]
