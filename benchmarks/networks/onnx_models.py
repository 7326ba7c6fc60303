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
    make = _NODES.get(layer.kind if layer.of == FORWARD else f"{layer.kind}, {layer.of}")
    made = None if make is None else make(layer)
    return made if made is None or isinstance(made, list) else [made]


def _window(layer: Layer) -> dict[str, Any]:
    space = len(layer.x) - 2
    return {"strides": [layer.stride] * space, "pads": [layer.pad[0]] * space + [layer.pad[1]] * space}


def _conv(layer: Layer) -> Any:
    more: dict[str, Any] = {"group": layer.groups, "dilations": [layer.dilation] * (len(layer.x) - 2)}
    if layer.of == INPUT:
        more["output_shape"] = list(layer.x[2:])
    name = "Conv" if layer.of == FORWARD else "ConvTranspose"
    return helper.make_node(name, ["a", "b"], ["y"], **_window(layer), **more)


def _pool(layer: Layer) -> Any:
    name = {"max pool": "MaxPool", "average pool": "AveragePool"}[layer.kind]
    return helper.make_node(name, ["a"], ["y"], kernel_shape=list(layer.kernel), **_window(layer))


def _attention(layer: Layer) -> list[Any]:
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


_NODES: dict[str, Callable[[Layer], Any]] = {
    **dict.fromkeys(("conv", "depthwise", f"conv, {INPUT}", f"depthwise, {INPUT}"), _conv),
    **dict.fromkeys(("max pool", "average pool"), _pool),
    **dict.fromkeys(("layer norm", "group norm"), _norm),
    "attention": _attention,
    "sort": _sort,
    f"embedding, {KERNEL}": lambda layer: helper.make_node("ScatterND", ["a", "b", "c"], ["y"], reduction="add"),
    "up-conv": lambda layer: helper.make_node("ConvTranspose", ["a", "b"], ["y"], strides=[layer.stride] * 2),
    f"up-conv, {INPUT}": lambda layer: helper.make_node("Conv", ["a", "b"], ["y"], strides=[layer.stride] * 2),
    "softmax": lambda layer: helper.make_node("Softmax", ["a"], ["y"], axis=-1),
    "gelu": lambda layer: helper.make_node("Gelu", ["a"], ["y"]),
    "matmul": _matmul,
    "GRU": _gru,
    "embedding": lambda layer: helper.make_node("Gather", ["b", "a"], ["y"]),
    "FFT": lambda layer: helper.make_node("DFT", ["a"], ["y"]),
    "random normal": lambda layer: helper.make_node("RandomNormal", [], ["y"], shape=layer.x),
}
