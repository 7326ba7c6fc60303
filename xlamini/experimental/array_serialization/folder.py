"""The folder that a pytree is saved in: `index.json`, and one file for each different shard of each array.

The index has the structure of the pytree, and of each leaf its shape, its dtype, and the boxes that its shards cover. A
file has the bytes of one box in row-major order. A folder is written under another name and renamed at the end, so that
one with an index is complete.
"""
from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import LoadError, PyTreeDef, as_dtype
from xlamini.runtime import Array
from xlamini.staging.aot import treedef_json

_INDEX, _VERSION = "index.json", 1

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""A part of an array: where it begins, and its shape."""


class Leaf(NamedTuple):
    """A saved array."""

    shape: tuple[int, ...]
    dtype: str
    boxes: tuple[Box, ...]


def box_of(index: tuple[slice, ...], shape: Sequence[int]) -> Box:
    """The box that a tuple of slices selects."""
    bounds = [part.indices(n)[:2] for part, n in zip(index, shape, strict=True)]
    return tuple(start for start, _ in bounds), tuple(stop - start for start, stop in bounds)


def leaf_of(x: Array) -> Leaf:
    """The entry for an array: the boxes of all its shards, also of those of other processes."""
    boxes = {box_of(index, x.shape) for index in x.sharding.devices_indices_map(x.shape).values()}
    return Leaf(x.shape, x.dtype.name, tuple(sorted(boxes)))


def host_shards(x: Array) -> list[tuple[Box, np.ndarray]]:
    """The shards that this process writes: of each box the first one among all devices."""
    return [
        (box_of(shard.index, x.shape), np.asarray(shard.data)) for shard in x.addressable_shards if not shard.replica_id
    ]


def file_of(folder: Path, number: int, box: Box) -> Path:
    """The file of one box of the leaf `number`."""
    return folder / f"{number}.{'-'.join(map(str, box[0])) or 'scalar'}.bin"


def write_shards(folder: Path, shards: Sequence[Sequence[tuple[Box, np.ndarray]]]) -> None:
    """Write this process's shards of each leaf."""
    for number, parts in enumerate(shards):
        for box, data in parts:
            file_of(folder, number, box).write_bytes(np.ascontiguousarray(data).tobytes())


def read_index(folder: Path) -> tuple[PyTreeDef, list[Leaf]]:
    """The structure and the entries of its leaves; LoadError if the folder is not a saved pytree."""
    try:
        index = json.loads((folder / _INDEX).read_text())
        if index["version"] != _VERSION:
            raise ValueError(f"its version is {index['version']}, not {_VERSION}")
        leaves = [_leaf(*entry) for entry in index["leaves"]]
        tree = treedef_json.read(index["tree"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"load: {folder} is no folder that save has written: {error}") from None
    if tree.num_leaves != len(leaves):
        raise LoadError(f"load: the index of {folder} is damaged: {tree.num_leaves} leaves, {len(leaves)} entries")
    return tree, leaves


def _leaf(shape: Any, dtype: str, boxes: Any) -> Leaf:
    as_dtype(dtype)
    return Leaf(tuple(map(int, shape)), dtype, tuple((tuple(map(int, a)), tuple(map(int, b))) for a, b in boxes))


def check_replaceable(folder: Path, overwrite: bool) -> None:
    """ValueError where an earlier save must not be replaced, or where the folder has something else in it."""
    if not folder.exists():
        return
    if not overwrite:
        raise ValueError(f"save: {folder} exists; pass overwrite=True, or another directory")
    if any(folder.iterdir()) and not (folder / _INDEX).exists():
        raise ValueError(f"save: {folder} has other files in it than those of an earlier save; pass another directory")


def index_of(tree: PyTreeDef, leaves: Sequence[Leaf]) -> str:
    """The text of the index; ValueError for a container of a class that is not registered."""
    return json.dumps({"version": _VERSION, "tree": treedef_json.written(tree, "save"), "leaves": leaves})


def complete(partial: Path, folder: Path, index: str) -> None:
    """Write the index, and put the folder in the place of an earlier save, which is only now removed."""
    (partial / _INDEX).write_text(index)
    if folder.exists():
        shutil.rmtree(folder)
    partial.rename(folder)


def read_box(folder: Path, number: int, leaf: Leaf, box: Box) -> np.ndarray:
    """A part of a saved array, from the files of all boxes that it touches."""
    out = np.empty(box[1], as_dtype(leaf.dtype))
    filled = 0
    for saved in leaf.boxes:
        shared = _intersection(box, saved)
        if shared is not None:
            out[_slices(shared, box)] = _mapped(folder, number, leaf, saved)[_slices(shared, saved)]
            filled += math.prod(shared[1])
    if filled != out.size:
        raise LoadError(f"load: the index of {folder} does not cover the leaf {number}")
    return out


def _mapped(folder: Path, number: int, leaf: Leaf, box: Box) -> np.ndarray:
    path, dtype, size = file_of(folder, number, box), as_dtype(leaf.dtype), math.prod(box[1])
    if not path.exists() or path.stat().st_size != size * dtype.itemsize:
        raise LoadError(f"load: {path} is missing or has another size; save the arrays again")
    if size == 0:
        return np.empty(box[1], dtype)
    return np.memmap(path, dtype, mode="r", shape=box[1] or (1,)).reshape(box[1])


def _intersection(a: Box, b: Box) -> Box | None:
    starts = tuple(map(max, a[0], b[0]))
    stops = [min(s + n, t + m) for s, n, t, m in zip(*a, *b, strict=True)]
    shape = tuple(stop - start for start, stop in zip(starts, stops, strict=True))
    return (starts, shape) if all(n > 0 for n in shape) else None


def _slices(part: Box, of: Box) -> tuple[slice, ...]:
    return tuple(slice(s - t, s - t + n) for s, n, t in zip(*part, of[0], strict=True))
