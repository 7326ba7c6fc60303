"""Text pictures of a sharding: a box for each shard, labelled with the devices that hold it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence

from xlamini.core.console import printable
from xlamini.runtime.sharding import Sharding

ColorMap = Callable[[float], Sequence[float]]

_HEIGHT = 10
"""Lines of a picture at scale 1."""

_WIDTH_OF_LINE = 2.5
"""The ratio of a character's height to its width."""

_PALETTE = (24, 130, 28, 88, 55, 94, 22, 60, 31, 172, 64, 124, 97, 136, 71, 103)
"""Dark colors among a terminal's 256."""

Grid = list[list[tuple[int, ...]]]
"""For each row of shards, and each shard in it, the ids of the devices that hold it."""


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Print a picture of the shards of an array of one or two dimensions, with the devices that hold them.

    Args:
      shape: the array's shape.
      sharding: its sharding.
      use_color: give each shard its own color, if the output is a terminal.
      scale: the scale of the picture.
      min_width: the least width of a box, in characters with its borders.
      max_width: the greatest width of the picture; boxes are narrowed, and labels wrapped, to fit.
      color_map: a function from a number between 0 and 1 to red, green and blue, each between 0 and 1.

    Raises ValueError for another number of dimensions, ShardingError for a shape that the sharding cannot split.

    >>> visualize_sharding((2, 4), xlamini.numpy.ones(1).sharding, scale=0.3)
    ┌─────────────┐
    │    CPU 0    │
    │             │
    └─────────────┘
    """
    shape = tuple(shape)
    if not 1 <= len(shape) <= 2:
        raise ValueError(
            f"visualize_sharding: shape {shape} has {len(shape)} dimensions, but a picture has 1 or 2; show a part"
        )
    grid, kind = _grid(shape, sharding), next(iter(sharding.device_set)).platform.upper()
    texts = [[f"{kind} {','.join(map(str, held))}" for held in row] for row in grid]
    boxes = _boxes(texts, shape, scale, min_width, max_width)
    paint = _painter(len(grid) * len(grid[0]), color_map) if use_color and sys.stdout.isatty() else _plain
    print(printable(_draw(boxes, paint)))  # noqa: T201


def _grid(shape: tuple[int, ...], sharding: Sharding) -> Grid:
    held: dict[tuple[int, int], list[int]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        column, row = index[-1].start or 0, (index[0].start or 0) if len(shape) == 2 else 0
        held.setdefault((row, column), []).append(device.id)
    rows, columns = (sorted({place[i] for place in held}) for i in range(2))
    return [[tuple(sorted(held[row, column])) for column in columns] for row in rows]


def _boxes(
    texts: list[list[str]], shape: tuple[int, ...], scale: float, min_width: int, max_width: int
) -> list[list[list[str]]]:
    """The lines inside the box of each shard."""
    widths, height = _widths(texts, shape, scale, min_width, max_width), 1
    if len(shape) == 2:
        height = max(int(int(_HEIGHT * scale) / len(texts)) - 1, 1)
    broken = [[_wrap(text, width) for text, width in zip(row, widths, strict=True)] for row in texts]
    height = max(height, *[len(lines) for row in broken for lines in row])
    return [[_center(lines, width, height) for lines, width in zip(row, widths, strict=True)] for row in broken]


def _widths(
    texts: list[list[str]], shape: tuple[int, ...], scale: float, min_width: int, max_width: int
) -> list[int]:
    """The width of each column of boxes, without borders."""
    count, height = len(texts[0]), int(_HEIGHT * scale)
    whole = height * (shape[1] if len(shape) == 2 else 1) / max(shape[0], 1) * _WIDTH_OF_LINE
    preferred = max(int(int(whole) / count), min_width) - 2
    room = max(max_width - count - 1, count)
    needed = [max(preferred, *[len(row[i]) for row in texts]) for i in range(count)]
    if sum(needed) <= room:
        return needed
    return [room // count + (i < room % count) for i in range(count)]


def _wrap(text: str, width: int) -> list[str]:
    return [text] if len(text) <= width else textwrap.wrap(text.replace(",", ", "), width)


def _center(lines: list[str], width: int, height: int) -> list[str]:
    """The lines centered in a box."""
    longest = max(map(len, lines))
    left, above = (width - longest) // 2, (height - len(lines)) // 2
    text = [f"{' ' * left}{line}".ljust(width) for line in lines]
    return [" " * width] * above + text + [" " * width] * (height - len(lines) - above)


Paint = Callable[[str, int], str]


def _draw(boxes: list[list[list[str]]], paint: Paint) -> str:
    widths = [len(box[0]) for box in boxes[0]]
    top, between, bottom = (_border(widths, *corners) for corners in ("┌┬┐", "├┼┤", "└┴┘"))
    numbers = _numbers(len(boxes), len(widths))
    rows = [_row(row, at, paint) for row, at in zip(boxes, numbers, strict=True)]
    return "\n".join([top, f"\n{between}\n".join(rows), bottom])


def _border(widths: list[int], left: str, between: str, right: str) -> str:
    return left + between.join("─" * width for width in widths) + right


def _row(boxes: list[list[str]], numbers: list[int], paint: Paint) -> str:
    lines = zip(*boxes, strict=True)
    return "\n".join(f"│{'│'.join(map(paint, line, numbers))}│" for line in lines)


def _numbers(rows: int, columns: int) -> list[list[int]]:
    """The color number of each shard."""
    return [[row * columns + column for column in range(columns)] for row in range(rows)]


def _plain(text: str, number: int) -> str:
    return text


def _painter(count: int, color_map: ColorMap | None) -> Paint:
    """A function that colors a shard's text by its number among `count`, with terminal escape sequences."""

    def paint(text: str, number: int) -> str:
        color = f"5;{_PALETTE[number % len(_PALETTE)]}"
        if color_map is not None:
            red, green, blue = (round(255 * part) for part in list(color_map(number / count))[:3])
            color = f"2;{red};{green};{blue}"
        return f"\x1b[48;{color}m{text}\x1b[0m"

    return paint
