"""Faces whose names a stub lists: the small reader and `ast` agree, every name loads, no submodule hides a function."""
from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.core.stubs import read_stub
from xlamini.numpy.reductions import sum as inner_sum

ROOT = Path(__file__).parent.parent
STUBS = sorted(
    stub
    for stub in (ROOT / "xlamini").rglob("*.pyi")
    if stub.with_suffix(".py").exists() and "attach_stub" in stub.with_suffix(".py").read_text()
)


def face_of(stub: Path) -> str:
    """The dotted name of the module beside a stub."""
    return ".".join(stub.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


every_stub = pytest.mark.parametrize("stub", STUBS, ids=face_of)
FACES = [importlib.import_module(face_of(stub)) for stub in STUBS]
every_face = pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)


@every_stub
def test_the_reader_agrees_with_ast(stub: Path) -> None:
    """A stub consists of `from module import a as a` alone, the form that type checkers take for an export."""
    listed: dict[str, str] = {}
    for statement in ast.parse(stub.read_text()).body:
        assert isinstance(statement, ast.ImportFrom) and statement.level == 0
        for alias in statement.names:
            assert alias.name == alias.asname and alias.name not in listed
            listed[alias.name] = str(statement.module)
    assert read_stub(stub.read_text()) == listed


def test_the_reader_takes_less_than_a_millisecond() -> None:
    text = (ROOT / "xlamini/numpy/__init__.pyi").read_text()

    def taken() -> float:
        start = time.perf_counter()
        read_stub(text)
        return time.perf_counter() - start

    assert min(taken() for _ in range(20)) < 1e-3


@every_face
def test_all_that_a_face_names_is_there(face: ModuleType) -> None:
    for name in dir(face):
        assert getattr(face, name) is not None or name == "newaxis" or name.startswith("_")
    assert set(read_stub(Path(str(face.__file__)).with_suffix(".pyi").read_text())) <= set(dir(face))
    with pytest.raises(AttributeError, match=f"module '{face.__name__}' has no attribute 'nothing'"):
        _ = face.nothing


@every_stub
def test_no_function_hides_behind_a_module_of_its_name(stub: Path) -> None:
    """Importing the module would put it in the function's place, unless the function is loaded with the face."""
    package, names = face_of(stub), read_stub(stub.read_text())
    modules = {path.stem for path in stub.parent.iterdir()} if stub.stem == "__init__" else set()
    assert [n for n in modules & set(names) if names[n] not in (package, f"{package}.{n}")] == []


@every_face
def test_functions_are_edges_that_pickle_finds(face: ModuleType) -> None:
    functions = [f for f in (getattr(face, name) for name in face.__all__) if type(f) is FunctionType]
    for function in functions:
        assert pickle.loads(pickle.dumps(function)) is function


@every_stub
def test_a_stub_names_its_own_floor_or_those_beneath(stub: Path) -> None:
    """The layers of pyproject.toml hold for what is imported on demand, too."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [[part.strip(" ()") for part in layer.split(" : ")] for layer in contracts[0]["layers"]]
    depth = {part: number for number, layer in enumerate(layers) for part in layer}
    own = face_of(stub).partition(".")[2].partition(".")[0]
    parts = {module.split(".")[1] for module in read_stub(stub.read_text()).values() if module != "xlamini"}
    assert own == "" or [part for part in parts - {own} if depth[part] <= depth[own]] == []


def test_a_name_of_a_face_is_the_function_itself() -> None:
    assert jnp.sum is inner_sum
    assert jnp.sum.__doc__ == inner_sum.__doc__ and inspect.signature(jnp.sum) == inspect.signature(inner_sum)
    assert (jnp.sum.__module__, jnp.sum.__qualname__) == ("xlamini.numpy", "sum")


def test_an_error_from_a_face_has_the_frames_of_the_user_only() -> None:
    with pytest.raises(TypeError) as caught:
        jnp.sum(object())
    assert not any((ROOT / "xlamini") in Path(entry.path).parents for entry in caught.traceback)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'norml'; did you mean normal") as caught:
        _ = xlamini.random.norml
    assert caught.value.name == "norml"


def test_star_import_has_every_function() -> None:
    namespace: dict = {}
    exec("from xlamini.numpy import *", namespace)
    assert {"sin", "unique", "add", "take", "einsum", "pi", "fft"} <= set(namespace)
    assert set(read_stub((ROOT / "xlamini/numpy/__init__.pyi").read_text())) - set(namespace) == {
        "__array_api_version__",
        "__array_namespace_info__",
    }
    assert all(callable(namespace[name]) for name in ("take", "einsum", "vectorize", "cross"))


@pytest.mark.full
def test_methods_are_those_of_the_families() -> None:
    x = jnp.arange(6.0)
    assert x.sum() == 15 and x.conj()[1] == 1 and x.flatten().shape == (6,)
    assert x.compress(x > 3).shape == (2,) and int(xlamini.jit(lambda x: x.argmax())(x)) == 5
    assert type(x).cumsum.__name__ == "cumsum" and "running sum" in type(x).cumsum.__doc__


@pytest.mark.full
def test_starting_imports_no_loops_and_no_compiler() -> None:
    code = (
        "import sys, gc, xlamini, xlamini.numpy; "
        "lazy = ('xlamini.transforms.scan', 'xlamini.transforms.while_loop', 'jaxlib.mlir.ir'); "
        "print([m for m in sys.modules if m.startswith(lazy)], "
        "gc.isenabled())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[] True"


@pytest.mark.full
def test_tracing_a_gradient_imports_no_compiler() -> None:
    """Only lowering needs MLIR: a program that is traced to be inspected starts sooner without it."""
    code = (
        "import sys, xlamini, xlamini.numpy as jnp; "
        "loss = lambda x: jnp.mean(xlamini.nn.gelu(xlamini.nn.standardize(x))) + jnp.std(x); "
        "jaxpr = xlamini.make_jaxpr(xlamini.grad(loss))(xlamini.ShapeDtypeStruct((3,), 'float32')); "
        "print(len(jaxpr.eqns) > 9, 'jaxlib.mlir.ir' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True False"
