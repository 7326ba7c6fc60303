"""The operations of calls of cuDNN and cuBLAS, which XLA's analysis counts as none."""
from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.shapes import dimensions_of, elements_of

_CONVOLUTION = re.compile(r"__cudnn\$conv(\w*Forward|BackwardInput|BackwardFilter)$")
_PRODUCT = re.compile(r"__cublas\$(?:gemm|lt\$matmul)")
_KERNEL_LABELS = re.compile(r"\bdim_labels=\w+?_(\w+?)->\w+")
_CONTRACTED = re.compile(r'"lhs_contracting_dimensions":\[([^\]]*)\]')


def library_flops(each: Instruction, operands: Sequence[str]) -> float | None:
    """The operations of a library call, whose operands have these types; None if it is not known what it computes."""
    if _PRODUCT.match(each.target):
        return _product_flops(each, operands)
    convolution = _CONVOLUTION.match(each.target)
    return _convolution_flops(each, operands, convolution[1]) if convolution else None


def is_library_call(each: Instruction) -> bool:
    """Whether an instruction calls a library of NVIDIA's."""
    return each.opcode == "custom-call" and each.target.startswith(("__cudnn$", "__cublas$"))


def _product_flops(each: Instruction, operands: Sequence[str]) -> float | None:
    contracted = _CONTRACTED.search(each.attributes)
    if contracted is None:
        return None
    lhs = dimensions_of(operands[0])
    result = prod(dimensions_of(elements_of(each.type)[0]))
    return 2.0 * result * prod([lhs[int(n)] for n in re.findall(r"\d+", contracted[1])])


def _convolution_flops(each: Instruction, operands: Sequence[str], direction: str) -> float | None:
    """Each element of the output takes a window of products; the derivatives take as many as the convolution does."""
    result, labels = elements_of(each.type)[0], _KERNEL_LABELS.search(each.attributes)
    if labels is None:
        return None
    image, kernel = {"BackwardInput": (operands[0], operands[1]), "BackwardFilter": (operands[1], result)}.get(
        direction, (result, operands[1])
    )
    sides = dimensions_of(kernel)
    return 2.0 * prod(dimensions_of(image)) * prod(sides) / sides[labels[1].index("o")]
