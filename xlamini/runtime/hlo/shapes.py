"""The types in HLO text, such as `f32[8,4]{1,0:T(8,128)}` and tuples of them: their bytes."""
from __future__ import annotations

import math
import re
from collections.abc import Iterator

_ARRAY = re.compile(r"\b(?:[a-z]+(\d+)[a-z0-9]*|pred)\[([\d,]*)\]")


def sizes_of(text: str) -> Iterator[int]:
    """The bytes of each array in a type; a dtype of less than a byte counts as one."""
    for bits, dims in _ARRAY.findall(text):  # "bf16[8,4]", "f8e4m3fn[8]", "pred[]"
        yield math.prod(map(int, filter(None, dims.split(",")))) * max(int(bits or 8) // 8, 1)


def bytes_of(text: str) -> int:
    """The bytes of a type; those of a tuple are the sum of its elements'.

    >>> bytes_of("(f32[8,4]{1,0}, bf16[2])")
    132
    """
    return sum(sizes_of(text))


def elements_of(text: str) -> list[str]:
    """The types of a tuple's elements; the type itself if it is no tuple.

    >>> elements_of("(f32[8,4]{1,0:T(8,128)}, (s32[], pred[2]))")
    ['f32[8,4]{1,0:T(8,128)}', '(s32[], pred[2])']
    """
    if not text.startswith("("):
        return [text]
    found, depth, start = [], 0, 1
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if (character == "," and depth == 1) or (depth == 0 and position):
            found.append(text[start:position].strip())
            start = position + 1
    return list(filter(None, found))
