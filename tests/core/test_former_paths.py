"""Pickles that an earlier version wrote name modules by the paths at which that version had them."""

from __future__ import annotations

import importlib
import importlib.util
import pickle

import pytest

# What pickles of public values name, as written before modules lay in rooms.
NAMED = """
core.avals.ShapedArray core.effects.DebugEffect core.memory_space.Space primitives.accuracy.AccuracyMode
primitives.dot_algorithm.DotAlgorithm primitives.dot_algorithm.DotAlgorithmPreset
primitives.gather_numbers.GatherDimensionNumbers primitives.gather_numbers.GatherScatterMode
primitives.gather_numbers.ScatterDimensionNumbers primitives.precision.Precision
primitives.rng_bit_generator.RandomAlgorithm runtime.array.Array runtime.conversions._rebuild runtime.keys._rebuild
runtime.layout.Format runtime.layout.Layout staging.run.jit_options.Options staging.run.pickling._made_again
""".split()


@pytest.mark.parametrize("path", NAMED)
def test_a_pickle_finds_the_class_itself(path: str) -> None:
    module, _, name = path.rpartition(".")
    loaded = pickle.loads(f"cxlamini.{module}\n{name}\n.".encode())
    assert loaded.__name__ == name
    assert pickle.loads(pickle.dumps(loaded)) is loaded


def test_no_other_module_is_found() -> None:
    assert importlib.util.find_spec("xlamini.core.nothing") is None
    assert importlib.util.find_spec("xlamini.numpy.access") is None  # in a folder that always was one
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'xlamini\.runtime\.nothing'"):
        importlib.import_module("xlamini.runtime.nothing")
