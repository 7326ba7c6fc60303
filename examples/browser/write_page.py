"""Train here, run in the browser: a folder with a page that reads digits that are drawn on it.

The network of `examples/gallery/deformed_digits.py` is trained by xlamini and converted by jax2onnx, which is written
for JAX and runs on xlamini as it is. The page runs it by ONNX Runtime's WebAssembly, all from its own folder.

    pip install jax2onnx onnxruntime
    python examples/browser/write_page.py digits
    python -m http.server --directory digits

The runtime is a package of npm, `onnxruntime-web`; `--runtime FOLDER` takes one that was unpacked before.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import xlamini.as_jax  # noqa: F401 (answers `import jax`, which jax2onnx says)

HERE = Path(__file__).parent
RUNTIME = "onnxruntime-web@1.30.0"
PAGE = "index.html", "strokes.mjs"
OF_RUNTIME = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm", "ort-wasm-simd-threaded.mjs"

sys.path.insert(0, str(HERE.parent / "gallery"))


def network(weights: Path | None, quick: bool) -> Callable[[Any], Any]:
    """The trained network, a function of images (batch, 8, 8); `weights` is a file of an earlier run."""
    deformed_digits = import_module("deformed_digits")  # in the folder of the gallery

    if weights is None:
        params = deformed_digits.trained(quick)[0]
    else:
        arrays = list(np.load(weights).values())
        params = list(zip(arrays[::2], arrays[1::2], strict=True))
    return lambda images: deformed_digits.scores(params, images)


def onnx_model(fun: Callable[[Any], Any]) -> bytes:
    """The function as ONNX, for any number of images."""
    try:
        to_onnx = import_module("jax2onnx").to_onnx
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error.name} is missing; pip install jax2onnx onnxruntime") from None
    return to_onnx(fun, [("B", 8, 8)]).SerializeToString()


def copy_runtime(folder: Path, unpacked: Path | None) -> None:
    """ONNX Runtime's files for WebAssembly, from npm or from where it was unpacked."""
    with tempfile.TemporaryDirectory() as scratch:
        dist = (unpacked or _from_npm(Path(scratch))) / "dist"
        for name in OF_RUNTIME:
            shutil.copy(dist / name, folder / name)


def _from_npm(scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is missing, which brings ONNX Runtime for browsers; install Node, or give --runtime")
    subprocess.run([npm, "pack", "--silent", RUNTIME], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    (archive,) = scratch.glob("*.tgz")
    with tarfile.open(archive) as files:
        files.extractall(scratch, filter="data")
    return scratch / "package"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A page that reads drawn digits.")
    parser.add_argument("folder", type=Path, help="where the page is written")
    parser.add_argument("--quick", action="store_true", help="train for a few seconds only")
    parser.add_argument("--weights", type=Path, help="an .npz of weights and biases, in place of training")
    parser.add_argument("--runtime", type=Path, help="an unpacked onnxruntime-web, in place of npm's")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "digits.onnx").write_bytes(onnx_model(network(options.weights, options.quick)))
    for name in PAGE:
        shutil.copy(HERE / name, options.folder / name)
    copy_runtime(options.folder, options.runtime)
    print(f"wrote {options.folder}; python -m http.server --directory {options.folder}")


if __name__ == "__main__":
    main()
