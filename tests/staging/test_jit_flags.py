"""Flags that act where functions are traced, compiled and run: refusals, explanations, warnings and dumps."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest

import xlamini
from xlamini import config, numpy as jnp
from xlamini.core.flags.config import flags

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def explained(caplog):
    """The explanation of each miss since the last look: neither the two lines that say where, nor the advice."""

    def look() -> list[list[str]]:
        found = [m.split("\n  ")[1:] for m in caplog.messages if m.startswith("TRACING CACHE MISS at ")]
        caplog.clear()
        return [[line for line in lines[1:] if not line.startswith("to avoid it, ")] for lines in found]

    with xlamini.explain_cache_misses():
        yield look


# --- refusals


def test_no_tracing():
    f = xlamini.jit(lambda x: x * 2)
    f(X)
    with xlamini.no_tracing():
        assert f(X).tolist() == [0, 2, 4]
        message = "<lambda> would be traced for arguments of new types, but flag no_tracing is set"
        for trace in (lambda: f(X[:2]), lambda: xlamini.make_jaxpr(lambda x: x)(X)):
            with pytest.raises(RuntimeError, match=message):
                trace()
    assert f(X[:2]).tolist() == [0, 2]


def test_no_execution():
    f, x = xlamini.jit(lambda x: x * 2), jnp.asarray(X)
    compiled = f.lower(x).compile()
    f(x), x + 1
    with xlamini.no_execution():
        for name, run in (("<lambda>", f), ("<lambda>", compiled), ("add", lambda x: x + 1)):
            with pytest.raises(RuntimeError, match=f"{name} would run, but flag no_execution is set"):
                run(x)
        assert np.asarray(x).tolist() == [0, 1, 2]
        xlamini.jit(lambda x: x * 5).lower(x).compile()
    assert f(x).tolist() == compiled(x).tolist() == [0, 2, 4] and (x + 1).tolist() == [1, 2, 3]


def test_no_execution_is_of_one_thread():
    f, x, outs = xlamini.jit(lambda x: x * 2), jnp.asarray(X), []
    f(x)
    with xlamini.no_execution():
        thread = threading.Thread(target=lambda: outs.append(f(x).tolist()))
        thread.start()
        thread.join()
    assert outs == [[0, 2, 4]]


# --- explanations of cache misses


def test_misses_name_what_differs(explained):
    @functools.partial(xlamini.jit, static_argnames=("n",))
    def f(x, y=1.0, *, n=2):
        return x * n + y

    f(X)
    assert explained() == [["it has not been called before"]]
    f(X)
    assert explained() == []
    f(X[:2])
    assert explained() == [["x is float32[2], before float32[3]"]]
    f(X[:2].astype(np.int32))
    assert explained() == [["x is int32[2], before float32[2]"]]
    f(X, n=3)
    assert explained() == [["static argument 'n' is 3, before not given"]]
    f(1.0, n=3)
    assert explained() == [["x is weakly typed float32[], before float32[3]"]]
    with xlamini.numpy_rank_promotion("raise"):
        f(1.0, n=3)
    assert explained() == [["flag or context numpy_rank_promotion is 'raise', before 'allow'"]]


def test_misses_name_the_place(caplog):
    def f(x):
        return x

    with xlamini.explain_cache_misses():
        xlamini.jit(f)({"a": X})
        xlamini.jit(f)({"b": X})
    line = f.__code__.co_firstlineno
    first, second = caplog.messages
    assert second.endswith("to avoid it, give containers of one structure")
    assert first.startswith(f"TRACING CACHE MISS at {__file__}:{line + 4} (test_misses_name_the_place):\n  for f ")
    assert f"for f defined at {__file__}:{line}\n" in second
    assert "\n  the arguments have another structure: x has the keys 'b', where before x has 'a'\n" in second


def test_a_function_that_is_made_anew_is_named(explained):
    def scaled(scale):
        return lambda x, offset=scale: x * scale + offset

    xlamini.jit(scaled(1))(X)
    xlamini.jit(scaled(2))(X)
    first, second = explained()
    assert first == ["it has not been called before"]
    assert second == ["scale is 2, before 1, in a new function of the same code", "offset is 2, before 1"]


def test_functions_of_the_library_are_not_explained(explained):
    jnp.cosh(X[:2])
    jnp.median(np.ones((2, 7), np.float32))
    assert explained() == []


# --- large captured arrays


def test_large_captured_arrays_give_a_warning():
    big, small = np.ones(1000, np.float32), jnp.ones((10, 10))

    def h(x):
        return x.sum() + big + small.sum()

    with flags["captured_constants_warn_bytes"](4399):
        message = r"h captures 4,400 bytes of arrays, more than flag captured_constants_warn_bytes=4399; pass them as"
        with pytest.warns(UserWarning, match=message) as caught:
            assert xlamini.jit(h)(X).shape == (1000,)
        assert caught[0].filename == __file__
        with flags["captured_constants_report_frames"](-1), pytest.warns(UserWarning) as caught:
            xlamini.jit(h).lower(X[:2])
        line = h.__code__.co_firstlineno + 1
        lines = str(caught[0].message).split("\n")[1:]
        assert lines[0].startswith(f"  f32[1000], 4,000 bytes, used by add at {__file__}:{line} (")
        assert lines[1].startswith(f"  f32[10,10], 400 bytes, used by reduce_sum at {__file__}:{line} (")
    for enough in (4400, -1):
        with flags["captured_constants_warn_bytes"](enough):
            xlamini.jit(h).lower(X)


# --- dumps


@pytest.fixture
def folder(tmp_path):
    config.update("jax_dump_ir_to", str(tmp_path / "dump"))
    yield tmp_path / "dump"
    for name in ("dump_ir_to", "dump_ir_modes", "include_debug_info_in_dumps"):
        config.update(name, flags[name].default)


def test_programs_are_dumped(folder):
    def named(x):
        return x * 41

    xlamini.jit(named)(X)
    (file,) = folder.glob("jax_ir*_jit_named_compile.mlir")
    assert "stablehlo.multiply" in file.read_text() and "test_jit_flags.py" in file.read_text()
    config.update("jax_dump_ir_modes", "jaxpr,stablehlo")
    config.update("jax_include_debug_info_in_dumps", False)
    xlamini.jit(named)(X[:2])
    (file,) = folder.glob("jax_*_named.jaxpr.txt")
    assert file.read_text() == "{ lambda ; a:f32[2]. let b:f32[2] = mul a 41.0:f32[] in (b,) }\n"
    newest = max(folder.glob("*.mlir"))
    assert "tensor<2xf32>" in newest.read_text() and "test_jit_flags.py" not in newest.read_text()


def test_a_mode_that_does_not_exist(folder):
    config.update("jax_dump_ir_modes", "jaxpr_html")
    with pytest.warns(UserWarning, match="flag dump_ir_modes has no mode 'jaxpr_html'; it takes 'stablehlo', 'jaxpr'"):
        xlamini.jit(lambda x: x * 43)(X)


def test_paths_of_source_files_are_shortened():
    with flags["hlo_source_file_canonicalization_regex"]("^.*/(?=tests)"):
        text = xlamini.jit(lambda x: x * 47).lower(X).as_text(debug_info=True)
    assert 'loc("tests/staging/test_jit_flags.py"' in text and __file__ not in text


def test_levels_of_the_logger(caplog):
    with xlamini.explain_cache_misses():
        config.update("jax_logging_level", "ERROR")
        xlamini.jit(lambda x: x)(X)
        config.update("jax_logging_level", None)
        assert caplog.messages == [] and config.logging_level == "NOTSET"
        xlamini.jit(lambda x: x)(X)
    assert len(caplog.messages) == 1
