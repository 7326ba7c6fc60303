"""Shardy's sharding rules: which dimensions of a function's operands and results are divided alike.

    "i k, k j -> i j"          factors of a matrix product; k is a reduction factor
    "... i -> ... i"           any number of leading dimensions
    "(h d) -> h d", d=64       a dimension that is made of two factors

The text is parsed into a SdyShardingRule; `written` is its form in MLIR, for operands of given shapes.
"""
from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from xlamini.core import Shape
from xlamini.lowering.sharding_rules import factor_name

BATCHING = "…"
"""In an ArrayMapping, the leading dimensions that a rule does not name; followed by a number, one of several groups.

>>> rows = ArrayMapping(BATCHING, "i")
>>> SdyShardingRule((rows,), (rows,))
SdyShardingRule((('…', 'i'),), (('…', 'i'),), {})
"""

_TOKEN = re.compile(r"\s*(?:(?P<dots>\.\.\.\d*)|(?P<name>\w+)|(?P<sign>[(),])|(?P<other>\S))")
_KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")


class CompoundFactor(tuple[str, ...]):
    """The factors, from the major one on, of which a dimension is made.

    >>> CompoundFactor("heads", "width")
    ('heads', 'width')
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"A compound factor should contain at least two factors, got {factors}")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"CompoundFactor: factors are names, got {factor!r} of type {type(factor).__name__}")
            if _is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor; it stands for whole dimensions")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of an operand or a result: for each dimension a name or a CompoundFactor; BATCHING may come first.

    >>> ArrayMapping(BATCHING, CompoundFactor("heads", "width"), "j")
    ('…', ('heads', 'width'), 'j')
    """

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for i, entry in enumerate(dim_mappings):
            if isinstance(entry, CompoundFactor):
                continue
            if not isinstance(entry, str):
                raise ValueError(
                    f"ArrayMapping: dimensions are names or CompoundFactors, got {entry!r} of type "
                    f"{type(entry).__name__}"
                )
            if not _is_batching(entry):
                _check_name(entry)
            elif i:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension list, before all names")
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """A sharding rule: an ArrayMapping for each operand and each result.

    A factor in several mappings is divided in the same way in all of them. `reduction_factors` are summed over: the
    partial results of devices must be added. `need_replication_factors` are never divided, and for
    `permutation_factors` devices exchange data with neighbours. `factor_sizes` are the sizes of factors that appear
    only within CompoundFactors. ValueError for factors that the rule does not use, or whose size is not known.

    >>> SdyShardingRule((ArrayMapping("i", "k"), ArrayMapping("k")), (ArrayMapping("i"),), reduction_factors=("k",))
    SdyShardingRule((('i', 'k'), ('k',)), (('i',),), {} reduction_factors=('k',))
    """

    need_replication_factors: tuple[str, ...]
    permutation_factors: tuple[str, ...]
    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = tuple(operand_mappings), tuple(result_mappings)
        self.reduction_factors = reduction_factors
        self.need_replication_factors, self.permutation_factors = need_replication_factors, permutation_factors
        self.factor_sizes = factor_sizes
        entries = [entry for mapping in self._mappings for entry in mapping]
        whole = {entry for entry in entries if isinstance(entry, str)}
        parts = {factor for entry in entries if not isinstance(entry, str) for factor in entry}
        _check_sizes(whole, parts, factor_sizes)
        self._check_kinds(whole | parts)

    @property
    def _mappings(self) -> tuple[ArrayMapping, ...]:
        return (*self.operand_mappings, *self.result_mappings)

    def _check_kinds(self, known: set[str]) -> None:
        seen: set[str] = set()
        for kind in _KINDS:
            factors = getattr(self, kind)
            if not isinstance(factors, tuple):
                raise ValueError(f"{kind} must be a tuple of factors, got {factors!r}")
            for factor in factors:
                if factor not in known:
                    raise ValueError(f"Factor {factor} in {kind} is not used in the rule")
                if factor in seen:
                    raise ValueError(f"Factor {factor} can only be in one of {', '.join(_KINDS)}, and there once")
                seen.add(factor)

    def __repr__(self) -> str:
        kinds = "".join(f" {kind}={getattr(self, kind)}" for kind in _KINDS if getattr(self, kind))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{kinds})"


def parsed(rule: str, **options: Any) -> SdyShardingRule:
    """The rule that a text such as "i j, j k -> i k" says; `options` are the keyword arguments of SdyShardingRule."""
    if not isinstance(rule, str):
        raise TypeError(
            f"sharding_rule must be a text such as 'i j -> i j', a SdyShardingRule or a function, got {rule!r}"
        )
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: {rule!r}, or more than one; write 'i j, j k -> i k'")
    return SdyShardingRule(*map(_mappings, sides), **options)


def _mappings(side: str) -> tuple[ArrayMapping, ...]:
    """The mappings of one side; a side without text is one scalar."""
    mappings: list[list[Any]] = [[]]
    compound: list[str] | None = None
    for token in _TOKEN.finditer(side):
        text = token[0].strip()
        if token.lastgroup == "dots":
            if compound is not None or mappings[-1]:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension list, before all names")
            mappings[-1].append(f"{BATCHING}{int(text[3:] or 0)}")
        elif token.lastgroup == "name":
            _check_name(text)
            (mappings[-1] if compound is None else compound).append(text)
        elif token.lastgroup == "sign":
            compound = _after_sign(text, mappings, compound)
        else:
            _refuse(text)
    if compound is not None:
        raise ValueError(f"Brackets are not balanced in rule: {side.strip()!r}")
    return tuple(ArrayMapping(*mapping) for mapping in mappings)


def _after_sign(sign: str, mappings: list[list[Any]], compound: list[str] | None) -> list[str] | None:
    """The compound factor that is open after a bracket or a comma."""
    if sign == "(" and compound is None:
        return []
    if sign == ")" and compound is not None:
        if len(compound) < 2:
            raise ValueError("Brackets should contain at least two factors")
        mappings[-1].append(CompoundFactor(*compound))
        return None
    if sign == "," and compound is None:
        mappings.append([])
        return None
    raise ValueError("Brackets are not balanced, or nested; compound factors have one level, as in '(h d) j'")


def _refuse(character: str) -> None:
    if character == ".":
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    raise ValueError(f"Unknown character {character!r} in a sharding rule; it has names, commas, brackets and '...'")


def _check_name(factor: str) -> None:
    if not factor or not factor[0].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got {factor!r}")
    wrong = next((c for c in factor if not (c.isalnum() or c == "_")), None)
    if wrong is not None:
        raise ValueError(f"Unknown character {wrong!r} in the factor {factor!r}; names have letters, digits and '_'")


def _is_batching(factor: str) -> bool:
    return factor[:1] == BATCHING and (len(factor) == 1 or factor[1:].isdigit())


def _check_sizes(whole: set[str], parts: set[str], sizes: dict[str, int]) -> None:
    for factor, size in sizes.items():
        if not isinstance(size, int):
            raise TypeError(f"the size of factor {factor} must be an int, got {size!r}")
        if factor not in whole | parts:
            raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")
        if factor in whole:
            raise ValueError(f"Factor {factor} represents a whole dimension; do not specify its size")
    for factor in sorted(parts - whole - set(sizes)):
        raise ValueError(f"Factor {factor} is only used in compound factors; must specify its size, as {factor}=2")


def written(rule: SdyShardingRule, operands: Sequence[Shape], results: Sequence[Shape]) -> str:
    """The rule as an attribute in MLIR; ValueError if the shapes are not those that it describes."""
    _check_count("operands", rule.operand_mappings, operands)
    _check_count("results", rule.result_mappings, results)
    names = [*(f"{i}th operand" for i in range(len(operands))), *(f"{i}th result" for i in range(len(results)))]
    ranks: dict[str, int] = {}
    shapes = [*operands, *results]
    dims = [_dims(*each, ranks) for each in zip(names, rule._mappings, shapes, strict=True)]
    sizes = _sizes(names, dims, shapes, rule.factor_sizes)
    symbols = {factor: factor_name(i) for i, factor in enumerate(sizes)}
    tensors = [_tensor(each, symbols) for each in dims]
    count = len(operands)
    text = f"({', '.join(tensors[:count])})->({', '.join(tensors[count:])})"
    text += f" {{{', '.join(f'{symbols[factor]}={size}' for factor, size in sizes.items())}}}"
    return f"#sdy.op_sharding_rule<{text}{''.join(_kinds(rule, symbols))}, custom>"


def _check_count(what: str, mappings: Sequence[ArrayMapping], shapes: Sequence[Shape]) -> None:
    if len(mappings) != len(shapes):
        raise ValueError(f"Sharding rule has {len(mappings)} {what}, but the operation has {len(shapes)} {what}")


def _kinds(rule: SdyShardingRule, symbols: dict[str, str]) -> Iterable[str]:
    """The factors of each kind, in Shardy's order."""
    for kind in _KINDS:
        if factors := getattr(rule, kind):
            listed = ", ".join(sorted((symbols[f] for f in factors), key=_order))
            yield f" {kind.removesuffix('_factors')}={{{listed}}}"


def _dims(name: str, mapping: ArrayMapping, shape: Shape, ranks: dict[str, int]) -> list[tuple[str, ...]]:
    """The factors of each dimension; `ranks` are the numbers of dimensions that the ellipses stand for."""
    entries = list(mapping)
    leading: list[tuple[str, ...]] = []
    if entries and isinstance(entries[0], str) and _is_batching(entries[0]):
        group = entries.pop(0)[1:] or "0"
        count = max(len(shape) - len(entries), 0)
        if ranks.setdefault(group, count) != count:
            raise ValueError(
                f"Ellipsis represents different number of leading dimensions {ranks[group]} and {count}; number the "
                "ellipses, as ...1 and ...2"
            )
        leading = [(f"?{group}_{j}",) for j in range(count)]
    dims = [*leading, *((entry,) if isinstance(entry, str) else tuple(entry) for entry in entries)]
    if len(dims) != len(shape):
        raise ValueError(
            f"Sharding rule {name} has rank {len(dims)}, but the operation {name} has rank {len(shape)}"
        )
    return dims


def _sizes(
    names: Sequence[str], dims: Sequence[Sequence[tuple[str, ...]]], shapes: Sequence[Shape], given: dict[str, int]
) -> dict[str, int]:
    """The size of each factor, in the order in which they appear; of a factor with several sizes the smallest."""
    sizes: dict[str, int | None] = {}
    for factors, size in _pairs(dims, shapes):
        for factor in factors:
            known = sizes.setdefault(factor, given.get(factor))
            if len(factors) > 1:
                continue
            if known not in (None, size) and factor.startswith("?"):
                raise ValueError(f"Batching dimension {factor[1:]} corresponds to two sizes: {known} and {size}")
            sizes[factor] = size if known is None else min(known, size)
    found = {factor: size or 0 for factor, size in sizes.items()}
    for name, each, shape in zip(names, dims, shapes, strict=True):
        for factors, size in zip(each, shape, strict=True):
            product = math.prod(found[f] for f in factors)
            if len(factors) > 1 and product != size:
                raise ValueError(
                    f"{name} actual size {size} doesn't match the size {product} derived from the compound factors "
                    f"{factors}"
                )
    return found


def _pairs(dims: Iterable[Iterable[Any]], shapes: Iterable[Shape]) -> Iterable[tuple[tuple[str, ...], int]]:
    return [pair for each, shape in zip(dims, shapes, strict=True) for pair in zip(each, shape, strict=True)]


def _order(symbol: str) -> tuple[str, int]:
    letter, _, number = symbol.partition("_")
    return letter, int(number or 0)


def _tensor(dims: Iterable[Iterable[str]], symbols: dict[str, str]) -> str:
    return f"[{', '.join(''.join(symbols[f] for f in factors) for factors in dims)}]"
