"""The layers as models of one ONNX operator or a few, which ONNX Runtime optimizes as it does those of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime
from onnx import helper

from benchmarks.networks.layers import FORWARD, INPUT, Layer
from benchmarks.networks.operands import operands

_OPSET, _IR, _THREADS = 21, 10, 2


def program(layer: Layer) -> Callable[[], Any] | None:
    """A call of the layer; None for those of which ONNX has no operator: derivatives of pools and by kernels."""
    nodes = _nodes(layer)
    if nodes is None:
        return None
    arrays = operands(layer)
    if layer.of == INPUT:
        arrays = [arrays[-1], arrays[1]]
    names = "abc"[: len(arrays)]
    inputs = [_value(name, array.shape) for name, array in zip(names, arrays, strict=True)]
    graph = helper.make_graph(nodes, "layer", inputs, [_value("y", None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    session = onnxruntime.InferenceSession(model.SerializeToString(), _options(), ["CPUExecutionProvider"])
    feed = dict(zip(names, arrays, strict=True))
    return lambda: session.run(["y"], feed)


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = _THREADS, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _value(name: str, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def _nodes(layer: Layer) -> list[Any] | None:
    space = len(layer.x) - 2
    window = {"strides": [layer.stride] * space, "pads": [layer.pad[0]] * space + [layer.pad[1]] * space}
    if layer.kind in ("conv", "depthwise"):
        return _conv(layer, {**window, "group": layer.groups, "dilations": [layer.dilation] * space})
    if layer.of != FORWARD:
        return None
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
    "matmul": lambda layer: helper.make_node("MatMul", ["a", "b"], ["y"]),
}
