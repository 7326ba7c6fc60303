"""The layers as models of one ONNX operator or a few, which ONNX Runtime optimizes as it does those of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from benchmarks.networks.layers import FORWARD, INPUT, KERNEL, Layer
from benchmarks.networks.operands import operands

_OPSET, _IR, _THREADS = 21, 10, 2


def program(layer: Layer) -> Callable[[], Any] | None:
    """A call of the layer; None for those of which ONNX has no operator: most derivatives, products of bfloat16."""
    nodes = None if "bfloat16" in layer.dtypes else _nodes(layer)
    if nodes is None:
        return None
    arrays = _arrays(layer)
    names = "abc"[: len(arrays)]
    inputs = [_value(name, array) for name, array in zip(names, arrays, strict=True)]
    graph = helper.make_graph(nodes, "layer", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    session = onnxruntime.InferenceSession(model.SerializeToString(), _options(), ["CPUExecutionProvider"])
    feed = dict(zip(names, arrays, strict=True))
    return lambda: session.run(["y"], feed)


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = _THREADS, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _value(name: str, array: np.ndarray) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _arrays(layer: Layer) -> list[np.ndarray]:
    """The operators' inputs."""
    first, *others = operands(layer)
    if layer.kind == "random normal":
        return []
    if layer.kind == "FFT":
        return [first.view(np.float32).reshape(*first.shape, 2)]
    if layer.kind == "GRU":
        return [first, *(kernel[None] for kernel in others)]
    if layer.kind == "embedding" and layer.of == KERNEL:
        return [np.zeros_like(others[0]), first[:, None].astype(np.int64), others[1]]
    return [others[-1], others[0]] if layer.of == INPUT else [first, *others]


def _nodes(layer: Layer) -> list[Any] | None:
    space = len(layer.x) - 2
    window = {"strides": [layer.stride] * space, "pads": [layer.pad[0]] * space + [layer.pad[1]] * space}
    if layer.kind in ("conv", "depthwise"):
        return _conv(layer, {**window, "group": layer.groups, "dilations": [layer.dilation] * space})
    if layer.kind == "embedding" and layer.of == KERNEL:
        return [helper.make_node("ScatterND", ["a", "b", "c"], ["y"], reduction="add")]
    if layer.of != FORWARD:
        return None
    if layer.kind == "sort":
        return _sort(layer)
    if layer.kind in ("max pool", "average pool"):
        name = {"max pool": "MaxPool", "average pool": "AveragePool"}[layer.kind]
        return [helper.make_node(name, ["a"], ["y"], kernel_shape=list(layer.kernel), **window)]
    if layer.kind == "attention":
        return _attention()
    if layer.kind in ("layer norm", "group norm"):
        return _norm(layer)
    return [_OPERATORS[layer.kind](layer)]


def _conv(layer: Layer, window: dict[str, Any]) -> list[Any] | None:
    if layer.of == FORWARD:
        return [helper.make_node("Conv", ["a", "b"], ["y"], **window)]
    if layer.of == INPUT:
        return [helper.make_node("ConvTranspose", ["a", "b"], ["y"], output_shape=list(layer.x[2:]), **window)]
    return None


def _attention() -> list[Any]:
    scale = helper.make_tensor("scale", onnx.TensorProto.FLOAT, (), [1 / 8])
    return [
        helper.make_node("Constant", [], ["s"], value=scale),
        helper.make_node("Transpose", ["b"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["a", "t"], ["scores"]),
        helper.make_node("Mul", ["scores", "s"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "c"], ["y"]),
    ]


def _sort(layer: Layer) -> list[Any]:
    """All numbers as the least ones, in order."""
    count = helper.make_tensor("count", onnx.TensorProto.INT64, [1], layer.x[-1:])
    nodes = [helper.make_node("Constant", [], ["k"], value=count)]
    return [*nodes, helper.make_node("TopK", ["a", "k"], ["y", "places"], largest=0)]


def _matmul(layer: Layer) -> Any:
    return helper.make_node("MatMulInteger" if "int8" in layer.dtypes else "MatMul", ["a", "b"], ["y"])


def _gru(layer: Layer) -> Any:
    return helper.make_node("GRU", ["a", "b", "c"], ["y"], hidden_size=layer.kernel[0] // 3, linear_before_reset=1)


def _norm(layer: Layer) -> list[Any]:
    """Both norms scale and one shifts, here by 1 and 0: the operators cannot do without."""
    size = layer.x[-1] if layer.kind == "layer norm" else layer.x[1]
    nodes = []
    for name, value in (("scale", 1.0), ("shift", 0.0)):
        numbers = helper.make_tensor(name, onnx.TensorProto.FLOAT, [size], [value] * size)
        nodes.append(helper.make_node("Constant", [], [name], value=numbers))
    if layer.kind == "layer norm":
        return [*nodes, helper.make_node("LayerNormalization", ["a", "scale"], ["y"], axis=-1)]
    groups = {"num_groups": layer.groups}
    return [*nodes, helper.make_node("GroupNormalization", ["a", "scale", "shift"], ["y"], **groups)]


_OPERATORS: dict[str, Callable[[Layer], Any]] = {
    "up-conv": lambda layer: helper.make_node("ConvTranspose", ["a", "b"], ["y"], strides=[layer.stride] * 2),
    "softmax": lambda layer: helper.make_node("Softmax", ["a"], ["y"], axis=-1),
    "gelu": lambda layer: helper.make_node("Gelu", ["a"], ["y"]),
    "matmul": _matmul,
    "GRU": _gru,
    "embedding": lambda layer: helper.make_node("Gather", ["b", "a"], ["y"]),
    "FFT": lambda layer: helper.make_node("DFT", ["a"], ["y"]),
    "random normal": lambda layer: helper.make_node("RandomNormal", [], ["y"], shape=layer.x),
}
