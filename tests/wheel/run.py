"""`python -m tests.wheel.run BIN`: run all that is documented in the environment whose programs are in the folder BIN.

The environment has xlamini from its wheel and pytest. Each command is a process of its own, in a folder outside of the
clone, with the files that the documents speak of. What installs the package `jax` comes last, and then the programs of
`OVER_JAX`, in each of which the first import is that of `jax`.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.wheel.documents import commands, programs
from tests.wheel.reasons import COMMANDS, PROGRAMS, reason

_PRINTS = "print(jax.jit(lambda x: x * 2)(jax.numpy.arange(3)), jax.__xlamini__)\n"
_STEPS = "import xlamini\ndef step(x): return (x * x).sum()\nif __name__ == '__main__': print(xlamini.jit(step)(3.0))\n"
_MANY = "import xlamini\nxlamini.distributed.initialize()\nassert xlamini.process_count() > 1\n"
_FILES = {
    "script.py": f"import jax\n{_PRINTS}",
    "train.py": _STEPS,
    "test_it.py": "import jax\n\ndef test_it():\n    assert jax.__xlamini__\n",
}
_PUT_FOR = {"DIR": "wheels", "args...": "a b", "args…": "a b", "[--markdown]": "--markdown", "/scratch/me": "."}
"""What stands in a command for something of the reader's, and what is put in its place."""

FAILS = {
    "XLAMINI_PLATFORMS=cuda python train.py": "PlatformError",
    "XLAMINI_PLATFORMS=cuda,cpu python train.py": "PlatformError",
    "python -m xlamini doctor --platform cuda": "fix: ",
    "python -m xlamini doctor --platform tpu": "fix: ",
    "python -m xlamini inspect train.py:step --arg 'f32[8]' --diff step.html": "is not a report of xlamini.inspect",
}
"""What fails, as documented, on a machine without accelerators, and a part of what it says."""

_SPAWNS = f"""
import multiprocessing

def work():
    import jax
    {_PRINTS}

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 0
"""
OVER_JAX = {
    "import jax": f"import jax\n{_PRINTS}",
    "from jax import numpy": f"from jax import numpy\nimport jax\n{_PRINTS}",
    "import jax.numpy as jnp": f"import jax.numpy as jnp\nimport jax\n{_PRINTS}",
    "from jax.sharding import Mesh": f"from jax.sharding import Mesh\nimport jax\n{_PRINTS}",
    "import optax": f"import optax, jax\n{_PRINTS}",
    "a spawned process": _SPAWNS,
    "a test run": "import pytest, sys\nsys.exit(pytest.main(['-q', 'test_it.py']))\n",
}


class Runs:
    """The runs in one environment: what each took, and those that failed."""

    def __init__(self, programs: Path, folder: Path):
        self._env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
        self._folder, self.failed = folder, list[str]()

    def command(self, text: str) -> None:
        line = text
        for placeholder, value in _PUT_FOR.items():
            line = line.replace(placeholder, value)
        launched = {"script.py": _MANY, "train.py": _MANY} if "xlamini.launch" in text else {}
        self._run(text, ["bash", "-c", line], {**_FILES, **launched}, FAILS.get(text))

    def program(self, name: str, text: str) -> None:
        self._run(name, ["python", "program.py"], {**_FILES, "program.py": text})

    def _run(self, name: str, arguments: list[str], files: dict[str, str], error: str | None = None) -> None:
        for file, text in files.items():
            (self._folder / file).write_text(text)
        start = time.perf_counter()
        ran = subprocess.run(arguments, env=self._env, cwd=self._folder, capture_output=True, text=True)
        said = ran.stdout + ran.stderr
        as_documented = ran.returncode == 0 if error is None else ran.returncode != 0 and error in said
        print(f"{time.perf_counter() - start:6.1f} s  {name}{'' if as_documented else '  FAILED'}", flush=True)
        if not as_documented:
            self.failed.append(f"{name} (exit {ran.returncode})\n{said[-1500:]}")


def main(argv: list[str]) -> int:
    shown = [text for text in commands() if reason(text, COMMANDS) is None]
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(argv[0]).absolute(), Path(folder))
        installs = [text for text in shown if text.startswith("pip ")]
        for text in [*(text for text in shown if text not in installs), *sorted(installs)]:
            runs.command(text)
        for name, text in [*programs().items(), *OVER_JAX.items()]:
            if reason(name, PROGRAMS) is None:
                runs.program(name, text)
    print(*runs.failed, sep="\n")
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
