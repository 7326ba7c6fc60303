"""debug.visualize_sharding, visualize_array_sharding, inspect_array_sharding; pictures are those of JAX 0.10."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import over, split, table
from xlamini import debug, grad, jit, lax, numpy as jnp, vmap

TILES = """\
┌──────────┬──────────┬──────────┬──────────┐
│          │          │          │          │
│  CPU 0   │  CPU 1   │  CPU 2   │  CPU 3   │
│          │          │          │          │
│          │          │          │          │
├──────────┼──────────┼──────────┼──────────┤
│          │          │          │          │
│  CPU 4   │  CPU 5   │  CPU 6   │  CPU 7   │
│          │          │          │          │
│          │          │          │          │
└──────────┴──────────┴──────────┴──────────┘
"""
COLUMNS = """\
┌──────────┬──────────┬──────────┬──────────┐
│          │          │          │          │
│          │          │          │          │
│          │          │          │          │
│          │          │          │          │
│ CPU 0,4  │ CPU 1,5  │ CPU 2,6  │ CPU 3,7  │
│          │          │          │          │
│          │          │          │          │
│          │          │          │          │
│          │          │          │          │
└──────────┴──────────┴──────────┴──────────┘
"""
ROWS = """\
┌───────────────────────┬───────────────────────┐
│         CPU 0         │         CPU 4         │
├───────────────────────┼───────────────────────┤
│         CPU 1         │         CPU 5         │
├───────────────────────┼───────────────────────┤
│         CPU 2         │         CPU 6         │
├───────────────────────┼───────────────────────┤
│         CPU 3         │         CPU 7         │
└───────────────────────┴───────────────────────┘
"""
LINE = """\
┌───────────┬───────────┐
│CPU 0,1,2,3│CPU 4,5,6,7│
└───────────┴───────────┘
"""
SMALL = """\
┌───────┬───────┬───────┬───────┐
│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │
├───────┼───────┼───────┼───────┤
│ CPU 4 │ CPU 5 │ CPU 6 │ CPU 7 │
└───────┴───────┴───────┴───────┘
"""
NARROW = """\
┌────┬────┬────┬───┐
│    │    │    │   │
│CPU │CPU │CPU │CPU│
│0   │1   │2   │3  │
│    │    │    │   │
├────┼────┼────┼───┤
│    │    │    │   │
│CPU │CPU │CPU │CPU│
│4   │5   │6   │7  │
│    │    │    │   │
└────┴────┴────┴───┘
"""

PICTURES: dict[str, tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any], str]] = {
    "tiles": ((4, 8), ("x", "y"), {}, TILES),
    "columns": ((4, 8), (None, "y"), {}, COLUMNS),
    "rows": ((4, 8), ("y", "x"), {}, ROWS),
    "line": ((16,), ("x",), {}, LINE),
    "small": ((8, 8), ("x", "y"), {"scale": 0.5}, SMALL),
    "narrow": ((8, 80), ("x", "y"), {"min_width": 3, "max_width": 20}, NARROW),  # where JAX leaves names out
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shape, partitions, options, expected = PICTURES[name]
    debug.visualize_sharding(shape, over(*partitions), **options)
    assert capsys.readouterr().out == expected
    debug.visualize_array_sharding(split(np.ones(shape), *partitions), **options)
    assert capsys.readouterr().out == expected


def test_pictures_are_not_wider_than_asked(capsys: pytest.CaptureFixture[str]) -> None:
    debug.visualize_sharding((8, 512), over(None, ("x", "y")), max_width=40)
    assert {len(line) for line in capsys.readouterr().out.splitlines()} == {40}


def test_colours_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    debug.visualize_sharding((4, 8), over("x", "y"), use_color=False)
    assert capsys.readouterr().out == TILES
    debug.visualize_sharding((4, 8), over("x", "y"))
    assert capsys.readouterr().out.count("\x1b[48;5;") == 4 * 2 * 4
    debug.visualize_sharding((4, 8), over("x", "y"), color_map=lambda number: (1.0, number, 0.0, 1.0))
    assert "\x1b[48;2;255;191;0m" in capsys.readouterr().out


def test_the_compilers_choice_is_inspected_when_it_is_made() -> None:
    seen: list[Any] = []
    f = jit(lambda x: (debug.inspect_array_sharding({"p": x @ x.T}, callback=seen.append), x + 1)[1])
    x = split(table(4, 8), "x", "y")
    for _ in range(3):
        f(x)
    assert seen == [over("x")]
    debug.inspect_array_sharding([x, x], callback=seen.append)
    assert seen[1:] == [over("x", "y")] * 2


def test_pictures_in_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    jit(lambda x: debug.visualize_array_sharding(x * 2))(split(table(4, 8), "x", "y"))
    assert capsys.readouterr().out == TILES


def test_inspection_under_transformations() -> None:
    seen: list[Any] = []

    def looked_at(x: Any) -> Any:
        debug.inspect_array_sharding(x * 2, callback=seen.append)
        return jnp.sin(x).sum()

    x = split(table(4, 8), "x", "y")
    np.testing.assert_allclose(jit(grad(looked_at))(x), np.cos(table(4, 8)), rtol=1e-5)
    grad(looked_at)(x)
    jit(vmap(looked_at))(x)
    jit(lambda x: lax.scan(lambda c, _: (c * 2, looked_at(c)), x, None, length=3))(x)
    assert set(seen) == {over("x", "y")}
    assert len(seen) >= 4


def test_what_the_callback_raises_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    jit(lambda x: (debug.inspect_array_sharding(x, callback=lambda s: 1 / 0), x)[1])(split(table(8), "y"))
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_on_one_device() -> None:
    seen: list[Any] = []
    jit(lambda x: debug.inspect_array_sharding(x, callback=seen.append))(1.0)
    assert seen == [xlamini.sharding.SingleDeviceSharding(xlamini.devices()[0])]
