"""The layers: ResNet, MobileNet, ConvNeXt, ViT, WaveNet, U-Net, DCGAN, a GRU and a transformer's embedding at shapes at
which they are used; then single operations. Data only.
"""

from __future__ import annotations

from dataclasses import dataclass

Shape = tuple[int, ...]

FORWARD, INPUT, KERNEL = "forward", "input gradient", "kernel gradient"


@dataclass(frozen=True)
class Layer:
    """One layer: its kind, its operand's shape (batch, channels, space…), and what the kind needs.

    `of` says what is computed: the result, or the cotangent of the input or of the kernel. `dtypes` are those of the
    first operands; the others are float32.
    """

    network: str
    kind: str
    x: Shape
    kernel: Shape = ()
    stride: int = 1
    pad: tuple[int, int] = (0, 0)
    dilation: int = 1
    groups: int = 1
    of: str = FORWARD
    dtypes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A line of the table."""
        window = "×".join(map(str, self.kernel[2:] or self.kernel))
        steps, dtypes = f"/{self.stride}" if self.stride > 1 else "", "×".join(dict.fromkeys(self.dtypes))
        parts = [self.network, self.kind, dtypes, window, steps]
        shape = "×".join(map(str, self.x))
        what = "" if self.of == FORWARD else f", {self.of}"
        return f"{' '.join(filter(None, parts))}, {shape}{what}"


def _with_gradients(*arguments: object, **more: object) -> list[Layer]:
    return [Layer(*arguments, **more, of=of) for of in (FORWARD, INPUT, KERNEL)]  # type: ignore[arg-type]


def _with_input_gradient(*arguments: object, **more: object) -> list[Layer]:
    return _with_gradients(*arguments, **more)[:2]


_PAIRS = (("bfloat16", "bfloat16"), ("int8", "int8"), ("uint8", "int8"))

LAYERS: tuple[Layer, ...] = (
    *_with_gradients("ResNet", "conv", (8, 3, 224, 224), (64, 3, 7, 7), stride=2, pad=(3, 3)),
    *_with_gradients("ResNet", "conv", (8, 64, 56, 56), (64, 64, 3, 3), pad=(1, 1)),
    *_with_gradients("ResNet", "conv", (8, 64, 56, 56), (128, 64, 3, 3), stride=2, pad=(1, 1)),
    Layer("ResNet", "conv", (8, 64, 56, 56), (256, 64, 1, 1)),
    Layer("ResNet", "conv", (8, 512, 7, 7), (512, 512, 3, 3), pad=(1, 1)),
    Layer("ResNet", "max pool", (8, 64, 112, 112), (3, 3), stride=2, pad=(1, 1)),
    Layer("ResNet", "max pool", (8, 64, 112, 112), (3, 3), stride=2, pad=(1, 1), of=INPUT),
    *_with_gradients("ResNeXt", "conv", (8, 128, 28, 28), (128, 4, 3, 3), pad=(1, 1), groups=32),
    *_with_gradients("MobileNet", "depthwise", (8, 96, 56, 56), (96, 1, 3, 3), pad=(1, 1), groups=96),
    *_with_gradients("MobileNet", "depthwise", (8, 96, 112, 112), (96, 1, 3, 3), stride=2, pad=(1, 1), groups=96),
    *_with_gradients("ConvNeXt", "depthwise", (8, 96, 56, 56), (96, 1, 7, 7), pad=(3, 3), groups=96),
    Layer("ConvNeXt", "conv", (8, 3, 224, 224), (96, 3, 4, 4), stride=4),
    *_with_input_gradient("ConvNeXt", "layer norm", (8, 3136, 96)),
    Layer("ViT", "conv", (8, 3, 224, 224), (768, 3, 16, 16), stride=16),
    *_with_input_gradient("ViT", "attention", (4, 12, 197, 64)),
    *_with_input_gradient("ViT", "softmax", (4, 12, 197, 197)),
    *_with_input_gradient("ViT", "gelu", (4, 197, 3072)),
    Layer("ViT", "matmul", (788, 768), (768, 3072)),
    *_with_gradients("WaveNet", "conv", (8, 64, 4096), (64, 64, 2), pad=(8, 0), dilation=8),
    Layer("U-Net", "conv", (2, 64, 128, 128), (64, 64, 3, 3), pad=(1, 1)),
    *_with_input_gradient("U-Net", "group norm", (2, 320, 64, 64), groups=32),
    Layer("U-Net", "up-conv", (2, 128, 64, 64), (128, 64, 2, 2), stride=2),
    Layer("U-Net", "max pool", (2, 64, 128, 128), (2, 2), stride=2),
    Layer("U-Net", "max pool", (2, 64, 128, 128), (2, 2), stride=2, of=INPUT),
    Layer("U-Net", "average pool", (2, 64, 128, 128), (2, 2), stride=2),
    Layer("U-Net", "average pool", (2, 64, 128, 128), (2, 2), stride=2, of=INPUT),
    *_with_gradients("DCGAN", "up-conv", (8, 256, 16, 16), (256, 128, 4, 4), stride=2),
    *_with_gradients("Speech", "GRU", (64, 32, 128), (384, 128)),
    Layer("Transformer", "embedding", (4096,), (8192, 512), dtypes=("int32",)),
    Layer("Transformer", "embedding", (4096,), (8192, 512), dtypes=("int32",), of=KERNEL),
    *(Layer("", "matmul", (1024, 1024), (1024, 1024), dtypes=dtypes) for dtypes in _PAIRS),
    Layer("", "sort", (1 << 20,)),
    Layer("", "FFT", (1 << 20,), dtypes=("complex64",)),
    Layer("", "FFT", (256, 4096), dtypes=("complex64",)),
    Layer("", "random normal", (1 << 20,)),
)
"""In the order of the table."""
