"""einsum: products of several arrays, summed over repeated labels.

The subscripts are parsed once for given ranks. A path, planned by NumPy from the shapes, orders the products; each step
is a `contraction.product`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapeError, aval_of, memoised
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.contraction import (
    Arithmetic,
    Labelled,
    Labels,
    arithmetic,
    labelled,
    ordered,
    product,
    summed,
    without_ones,
)
from xlamini.primitives import cast
from xlamini.primitives.base.out_sharding import summed_in_sharding
from xlamini.primitives.products.dot_general import dot_general
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RESERVED = frozenset(".->")
"""What cannot be a label; any other character can, also a digit."""
Path = Sequence[tuple[int, ...]]


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | Path = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] = dot_general,
    out_sharding: Any = None,
) -> Array:
    """The sum of products that the subscripts describe: "ij,jk->ik" is the matrix product.

    Every operand has a label for each axis, or "..." for some that broadcast. A label that is not in the output is
    summed; without "->" the output has the labels that occur once, in alphabetical order. Also as `einsum(a, [0, 1], b,
    [1, 2], [0, 2])`. `optimize` sets the order in which several operands are multiplied: as planned by NumPy ("auto",
    "greedy", "optimal"), from left to right (False), or a path as `einsum_path` gives it. `_dot_general` computes the
    products in place of `lax.dot_general`. `out_sharding`, a PartitionSpec or NamedSharding, says how the result is
    split over a mesh. ValueError for bad subscripts, ShapeError for sizes that do not fit.

    >>> einsum("ij,ij->i", jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("einsum: `out` must be None, because arrays are immutable; use the returned array")
    if not isinstance(subscripts, str):
        subscripts, operands = _from_sublists((subscripts, *operands))
    planned = optimize if isinstance(optimize, str | bool) else tuple(map(_frozen, optimize))
    options = subscripts, planned, precision, preferred_element_type, _dot_general
    if out_sharding is None:
        return _einsum(operands, *options)
    return _einsum(operands, *options, out_sharding)


def einsum_path(
    subscripts: Any, /, *operands: ArrayLike, optimize: bool | str | Path = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` multiplies its operands, and a printable account of the cost.

    >>> einsum_path("ij,jk,kl", jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 5)))[0]
    [(0, 1), (0, 1)]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_sublists((subscripts, *operands))
    shapes = tuple(np.shape(x) for x in operands)
    terms, output = parse(subscripts, tuple(map(len, shapes)))
    path, account = _numpy_path(terms, output, shapes, optimize)
    return list(path), account


@composite(static=("subscripts", "optimize", "precision", "preferred_element_type", "dot", "out_sharding"))
def _einsum(
    operands: Sequence[Any],
    subscripts: str,
    optimize: Any,
    precision: Any,
    preferred_element_type: Any,
    dot: Any,
    out_sharding: Any = None,
) -> Any:
    if out_sharding is not None:
        options = subscripts, optimize, precision, preferred_element_type, dot
        return summed_in_sharding(out_sharding, _einsum, operands, *options)
    operands = [as_operand("einsum", x) for x in operands]
    terms, output = parse(subscripts, tuple(aval_of(x).ndim for x in operands))
    sizes = _sizes(terms, operands)
    how, weak = arithmetic("einsum", operands, precision, preferred_element_type)
    how = how._replace(dot=dot)
    inputs = [labelled("einsum", x, term) for x, term in zip(operands, terms, strict=True)]
    if len(inputs) > 2:
        path, _ = _numpy_path(terms, output, tuple(aval_of(x).shape for x in operands), optimize)
    else:
        path = [tuple(range(len(inputs)))]
    result = _along(path, without_ones(inputs, sizes), output, how)
    return cast(ordered(result, output), how.out, weak)


def _along(path: Path, operands: list[Labelled], output: Labels, how: Arithmetic) -> Labelled:
    """Multiply the operands along the path: each step removes some and appends their product."""
    for step in path:
        first, *others = [operands[i] for i in sorted(step)]
        operands = [x for i, x in enumerate(operands) if i not in step]
        for i, other in enumerate(others):
            later = [label for x in (*operands, *others[i + 1 :]) for label in x.labels]
            if later:
                needed = {*output, *later}
                between = dict.fromkeys(label for x in (other, first) for label in x.labels if label in needed)
                first = product(other, first, tuple(between), how)
            else:
                first = product(first, other, output, how)
        operands.append(first)
    (result,) = operands
    return summed(result, output, how)


# --- the subscripts


class Subscripts(NamedTuple):
    """The labels of each operand, and of the output; under an ellipsis, an axis' place from the last (negative)."""

    operands: tuple[Labels, ...]
    output: Labels


@memoised("helper: einsum subscripts", 1024)
def parse(subscripts: str, ranks: tuple[int, ...]) -> Subscripts:
    """The labels that subscripts give to operands of these ranks; ValueError where they make no sense."""
    text = "".join(subscripts.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: '{subscripts}' describes {len(terms)} operands, but {len(ranks)} are given")
    operands = tuple(_term_labels(t, rank, subscripts) for t, rank in zip(terms, ranks, strict=True))
    if not arrow:
        return Subscripts(operands, _implicit_output(operands))
    most = max((label_count for label_count in map(_ellipsis_size, operands)), default=0)
    output = _labels(right, most, subscripts)
    unknown = [label for label in output if not any(label in term for term in operands)]
    if unknown or len(set(output)) != len(output):
        why = f"has '{unknown[0]}', which no operand has" if unknown else "names a label twice"
        raise ValueError(f"einsum: the output of '{subscripts}' {why}")
    return Subscripts(operands, output)


def _term_labels(term: str, rank: int, subscripts: str) -> Labels:
    named = len(term.replace("...", ""))
    hidden = rank - named
    if hidden < 0 or (hidden and "..." not in term):
        raise ValueError(
            f"einsum: '{term}' in '{subscripts}' names {named} axes, but its operand has {rank}; "
            "name each axis, or write ... for the others"
        )
    return _labels(term, hidden, subscripts)


def _labels(term: str, hidden: int, subscripts: str) -> Labels:
    before, dots, after = term.partition("...")
    if not _RESERVED.isdisjoint(before + after):
        raise ValueError(f"einsum: '{term}' in '{subscripts}' must be labels, with one '...' at most")
    return (*before, *(range(-hidden, 0) if dots else ()), *after)


def _ellipsis_size(labels: Labels) -> int:
    return sum(isinstance(label, int) for label in labels)


def _implicit_output(operands: Sequence[Labels]) -> Labels:
    count = Counter(label for term in operands for label in term)
    hidden = sorted(label for label in count if isinstance(label, int))
    return (*hidden, *sorted(label for label, n in count.items() if isinstance(label, str) and n == 1))


def _sizes(terms: Sequence[Labels], operands: Sequence[Any]) -> dict[Hashable, int]:
    """The size of each label; an axis of size 1 fits any."""
    sizes: dict[Hashable, int] = {}
    for position, (term, x) in enumerate(zip(terms, operands, strict=True)):
        for label, n in zip(term, aval_of(x).shape, strict=True):
            known = sizes.get(label, 1)
            if n != known and 1 not in (n, known):
                which = f"label '{label}'" if isinstance(label, str) else f"axis {label} of the ellipsis"
                raise ShapeError(
                    f"einsum: {which} has size {known}, but {n} in operand {position} of shape {aval_of(x).shape}; "
                    "axes of one label must have one size"
                )
            sizes[label] = n if known == 1 else known
    return sizes


def _from_sublists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts as text from alternating operands and lists of labels."""
    pairs = arguments[: len(arguments) - len(arguments) % 2]
    letters = _letters(pairs[1::2])
    text = ",".join(_written(sublist, letters) for sublist in pairs[1::2])
    output = f"->{_written(arguments[-1], letters)}" if len(arguments) % 2 else ""
    return text + output, tuple(pairs[::2])


def _letters(sublists: Sequence[Any]) -> dict[Any, str]:
    """A letter for each label of the operands, in the order of the labels: it is that of an output not given."""
    try:
        labels = sorted({label for sublist in sublists for label in sublist if label is not Ellipsis})
        return {**dict(zip(labels, sorted(_LETTERS)[: len(labels)], strict=True)), Ellipsis: "..."}
    except (TypeError, ValueError):
        raise ValueError(
            f"einsum: {', '.join(map(repr, sublists))} are no lists of labels; write subscripts as text, or after each "
            f"operand a list of labels that can be sorted, such as integers, of which there are at most {len(_LETTERS)}"
        ) from None


def _written(sublist: Any, letters: dict[Any, str]) -> str:
    unknown = [label for label in sublist if label not in letters]
    if unknown:
        raise ValueError(f"einsum: the output has the label {unknown[0]!r}, which no operand has")
    return "".join(letters[label] for label in sublist)


# --- the path


def _numpy_path(terms: Sequence[Labels], output: Labels, shapes: Sequence[Any], optimize: Any) -> tuple[Path, Any]:
    """The path that NumPy plans from the shapes, and its account."""
    letters = dict(zip(dict.fromkeys(label for term in (*terms, output) for label in term), _LETTERS, strict=False))
    text = ",".join("".join(letters[label] for label in term) for term in terms)
    stand_ins = [np.broadcast_to(np.float32(0), tuple(map(_planned_size, shape))) for shape in shapes]
    arrow = "->" + "".join(letters[label] for label in output)
    if optimize is False:
        optimize = [(0, 1)] * (len(shapes) - 1)
    if isinstance(optimize, tuple | list):
        optimize = ["einsum_path", *(step for step in optimize if not isinstance(step, str))]
    elif optimize == "auto":
        optimize = "optimal" if len(shapes) <= 4 else "greedy"
    path, account = np.einsum_path(text + arrow, *stand_ins, optimize=optimize)
    return path[1:], account


def _planned_size(size: Any) -> int:
    """The size that a path is planned for: some number in place of a symbolic one, because any path is right."""
    return _USUAL if type(size) is SymbolicSize else size


_USUAL = 64


def _frozen(step: Any) -> Any:
    return tuple(step) if isinstance(step, list) else step
