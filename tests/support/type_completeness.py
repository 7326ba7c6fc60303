"""What share of the names has a type that every type checker knows: `python -m tests.support.type_completeness`.

pyright measures it, in a folder without the stubs of `typings`, which users do not have. It counts every module of the
package, those inside too, since a class in there whose type is unknown makes public names unknown that mention it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

FLOOR = 99.8
"""The least share in percent. It only goes up."""


def report() -> dict[str, Any]:
    """What pyright says of the package in this working tree."""
    command = [sys.executable, "-m", "pyright"]
    options = ["--verifytypes", "xlamini", "--ignoreexternal", "--outputjson"]
    with tempfile.TemporaryDirectory() as folder:
        # It looks for jaxlib and NumPy where the `python` of the PATH finds them.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}
        found = subprocess.run(
            [*command, *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    said = json.loads(found.stdout)["typeCompleteness"]
    assert said["packageRootDirectory"] == str(ROOT / "xlamini"), said["packageRootDirectory"]
    return said


def share(said: dict[str, Any]) -> float:
    """The share of exported names whose type is known, in percent, rounded down to two digits."""
    counts = said["exportedSymbolCounts"]
    return int(10_000 * counts["withKnownType"] / sum(counts.values())) / 100


def unknown(said: dict[str, Any]) -> list[str]:
    """The exported names whose type is unknown, or inferred in a way that type checkers differ in, each with why."""
    return [
        f"{symbol['name']}: {why}"
        for symbol in said["symbols"]
        if symbol["isExported"] and (symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"])
        for why in [_why(symbol)]
        if why
    ]


def _why(symbol: dict[str, Any]) -> str:
    """What pyright says of a name, on one line; "" where the reason is another name."""
    texts = (" ".join(found["message"].split()) for found in symbol["diagnostics"])
    return "; ".join(text for text in texts if not text.startswith("No docstring"))


def main() -> str | None:
    """None if the share is at least the floor, else what to do; prints the share and the names that lack types."""
    said = report()
    count = sum(said["exportedSymbolCounts"].values())
    print(f"{share(said)} % of {count} names have a known type", *unknown(said), sep="\n")
    return f"that is less than {FLOOR} %: annotate the names above" if share(said) < FLOOR else None


if __name__ == "__main__":
    sys.exit(main())
