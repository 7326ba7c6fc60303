"""`python -m xlamini jax-wheel DIR`: a wheel called `jax` that is xlamini, so that pip finds what libraries require."""
from __future__ import annotations

import argparse
import base64
import hashlib
import io
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from xlamini.core.console import printable
from xlamini.core.real_jax import CHILDREN, installed_jax
from xlamini.core.version import JAX_VERSION, __version__
from xlamini.runtime.files.file_format import replace_file

ABOUT = "Write a wheel called jax that is xlamini; then: pip install DIR/jax-*.whl"

_INFO = f"jax-{JAX_VERSION}.dist-info"  # a plain version: libraries take `version("jax")` apart into three numbers
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the wheel: its bytes depend on its contents alone."""

# Libraries use opt_einsum and scipy without requiring them, because JAX does.
_METADATA = f"""Metadata-Version: 2.1
Name: jax
Version: {JAX_VERSION}
Summary: xlamini in place of JAX
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: xlamini=={__version__}
Requires-Dist: opt_einsum
Requires-Dist: scipy>=1.13

This is not JAX. It makes `import jax` give xlamini, for libraries that require jax.
"""

_WHEEL = """Wheel-Version: 1.0
Generator: xlamini
Root-Is-Purelib: true
Tag: py3-none-any
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the wheel into a folder; exit code 1 where JAX is installed, as the wheel would replace it."""
    options = _parser().parse_args(argv)
    installed = installed_jax()
    if installed is not None:
        print(
            f"jax is installed in this environment ({installed}), and pip would replace it by the wheel; use a fresh "
            "environment, or run first: pip uninstall jax",
            file=sys.stderr,
        )
        return 1
    print(printable(str(write_wheel(Path(options.folder)))))
    return 0


def write_wheel(folder: Path) -> Path:
    """Write `jax-*.whl` into a folder, which is made if need be; the path of the wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"jax-{JAX_VERSION}-py3-none-any.whl"
    module = (CHILDREN / "jax/__init__.py").read_text()
    files = {"jax/__init__.py": module, f"{_INFO}/METADATA": _METADATA, f"{_INFO}/WHEEL": _WHEEL}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        for name, text in {**files, f"{_INFO}/RECORD": _record(files)}.items():
            wheel.writestr(zipfile.ZipInfo(name, _EARLIEST), text)
    replace_file(str(path), content.getvalue())
    return path


def _record(files: Mapping[str, str]) -> str:
    """The list of files with their hashes and sizes, which pip checks."""
    lines = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in files.items()]
    return "\n".join([*lines, f"{_INFO}/RECORD,,", ""])


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m xlamini jax-wheel", description=ABOUT)
    parser.add_argument("folder", metavar="DIR", help="where the wheel is written")
    return parser
