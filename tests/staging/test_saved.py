"""Compiled functions in files: what runs again, in this process and another, and what is refused."""
from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from tests.support.paths import ROOT
from xlamini import config, export, lax, numpy as jnp, random, tree_util
from xlamini.errors import LoadError
from xlamini.experimental import serialize_executable
from xlamini.runtime.devices import processor
from xlamini.runtime.files import file_format, machine_match
from xlamini.staging.aot import compiled_file, treedef_json

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def compiled(fun: Any, *args: Any, **options: Any) -> Any:
    return xlamini.jit(fun, **options).lower(*args).compile()


def again(program: Any) -> Any:
    return xlamini.load(program.serialize())


def same(found: Any, wanted: Any) -> None:
    assert tree_util.tree_structure(found) == tree_util.tree_structure(wanted)
    for a, b in zip(tree_util.tree_leaves(found), tree_util.tree_leaves(wanted), strict=True):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


PROGRAMS = {
    "elementwise": (lambda x: jnp.tanh(x) * 3, (X,)),
    "containers": (lambda p, n: {"sum": (p["w"] @ p["b"], None), "n": [n + 1]}, ({"w": X, "b": X[0]}, 2)),
    "grad": (xlamini.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), (X,)),
    "vmap of grad": (xlamini.vmap(xlamini.grad(lambda x: jnp.sum(x**3))), (X,)),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x), (X,)),
    "while": (lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, 1.0)), (5,)),
    "kernel": (lambda x: jnp.linalg.svd(x)[1], (X,)),
    "sort": (lambda x: jnp.sort(x, axis=0), (X,)),
    "unused argument": (lambda x, y: y + 1, (X, 2.0)),
    "no arguments": (lambda: jnp.arange(3), ()),
    "no outputs": (lambda x: (), (X,)),
    "argument returned": (lambda x, y: (y, x, x), (X, 1)),
    "empty": (lambda x: x.sum(0), (np.zeros((0, 3), np.float32),)),
    "bool and complex": (lambda x: (x > 0, x + 1j), (X,)),
    "bfloat16": (lambda x: x.astype("bfloat16") * 2, (X,)),
    "key words": (lambda k: random.key_data(random.split(k)), (random.key(3),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_as_before(name: str) -> None:
    fun, args = PROGRAMS[name]
    program = compiled(fun, *args)
    same(again(program)(*args), program(*args))


OF_ANOTHER_PROCESS = """
import sys, numpy, xlamini
step = xlamini.load(sys.argv[1])
x = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
print(step(x, y=2.0)["r"].tobytes().hex())
"""


def run_elsewhere(code: str, path: Path, cpus: int = 1) -> str:
    """What a program prints in a process of its own, with so many devices."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLAMINI_NUM_CPU_DEVICES": str(cpus)}
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.full
def test_it_runs_in_another_process(tmp_path: Path) -> None:
    scale, path = jnp.arange(3.0), tmp_path / "step.bin"
    program = xlamini.jit(lambda x, *, y: {"r": jnp.tanh(x) * scale + y}).lower(X, y=2.0).compile()
    program.save(path)
    found = run_elsewhere(OF_ANOTHER_PROCESS, path)
    assert bytes.fromhex(found) == np.asarray(program(X, y=2.0)["r"]).tobytes()


OVER_A_MESH = """
import sys, numpy, xlamini
from xlamini import numpy as jnp, sharding
mesh = sharding.Mesh(numpy.array(xlamini.devices()[::-1]).reshape(4, 2), ("x", "y"))
where = sharding.NamedSharding(mesh, sharding.PartitionSpec("x", "y"))
scale, x = jnp.arange(4.0), numpy.arange(32, dtype="float32").reshape(8, 4)
f = lambda x: {"y": jnp.tanh(x @ x.T) * x.sum(), "z": x * scale}
program = xlamini.jit(f, in_shardings=where).lower(x).compile()
program.save(sys.argv[1])
print(program(x)["z"].sharding.spec, program(x)["y"].tobytes().hex())
"""
LOADED = """
import sys, numpy, xlamini
x = numpy.arange(32, dtype="float32").reshape(8, 4)
program = xlamini.load(sys.argv[1])
again = xlamini.load(program.serialize())
assert program(x)["z"].sharding == again(x)["z"].sharding
assert [d.id for d in program(x)["z"].sharding.mesh.devices.flat] == [7, 6, 5, 4, 3, 2, 1, 0]
print(again(x)["z"].sharding.spec, again(x)["y"].tobytes().hex())
"""
TOO_FEW = """
import sys, xlamini
try:
    xlamini.load(sys.argv[1])
except xlamini.errors.LoadError as error:
    print(error)
"""
ONE_OF_THEM = """
import sys, xlamini
try:
    xlamini.load(sys.argv[1], device=xlamini.devices()[3])
except xlamini.errors.LoadError as error:
    print(error)
"""


@pytest.mark.full
def test_programs_over_a_mesh(tmp_path: Path) -> None:
    path = tmp_path / "mesh.bin"
    assert run_elsewhere(OVER_A_MESH, path, 8) == run_elsewhere(LOADED, path, 8)
    message = "runs on 8 devices of cpu, but this process has 4; compile it for that many"
    assert run_elsewhere(TOO_FEW, path, 4).endswith(message)
    assert run_elsewhere(ONE_OF_THEM, path, 8).endswith("no single one can be asked for; leave out device")


ON_ANOTHER_DEVICE = """
import sys, numpy, xlamini
third = xlamini.devices()[3]
program = xlamini.load(sys.argv[1], device=third)
x = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
assert program(x)[0].devices() == {third}
print(program(x)[0].tobytes().hex())
"""


@pytest.mark.full
def test_a_device_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "step.bin"
    program = compiled(lambda x: (jnp.linalg.cholesky(x @ x.T), x), X)
    program.save(path)
    assert bytes.fromhex(run_elsewhere(ON_ANOTHER_DEVICE, path, 4)) == np.asarray(program(X)[0]).tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "bool", "complex64", "uint16"])
def test_captured_arrays_are_in_the_file(dtype: str) -> None:
    table = jnp.arange(6).reshape(2, 3).astype(dtype)
    program = compiled(lambda i: table[i], 1)
    same(again(program)(1), program(1))


def test_captured_keys_and_wide_numbers() -> None:
    key = random.key(7)
    with xlamini.enable_x64(True):
        wide = jnp.arange(3.0) * 1e300
        program = compiled(lambda n: (random.uniform(key, (n.size,)), wide + n), jnp.arange(3))
        wanted = program(jnp.arange(3))
        same(again(program)(jnp.arange(3)), wanted)
    assert wanted[1].dtype == np.float64
    loaded = again(program)  # the numbers of a program do not depend on the flag where it is loaded
    with xlamini.enable_x64(True):
        same(loaded(jnp.arange(3)), wanted)


def test_donation_names_and_statics_are_kept() -> None:
    program = compiled(lambda state, n, scale: (state * scale, n), X, 2, 3.0, donate_argnums=0, static_argnums=2)
    loaded = again(program)
    assert repr(loaded) == repr(program)
    assert (loaded.donate_argnums, loaded.in_avals) == (program.donate_argnums, program.in_avals)
    assert loaded.args_info == program.args_info
    given = jnp.asarray(X)
    same(loaded(given, 2), program(jnp.asarray(X), 2))
    assert given.is_deleted()
    with pytest.raises(TypeError, match=r"state: compiled for f32\[2,3\], called with f32\[3\]"):
        loaded(X[0], 2)
    with pytest.raises(TypeError, match=r"leave out the static arguments \(scale\)"):
        loaded(X, 2, 3.0)


def test_a_loaded_program_is_saved_again(tmp_path: Path) -> None:
    first = compiled(lambda x: jnp.sort(jnp.tanh(x) + jnp.cumsum(x)), X[0])
    second = again(again(first))
    same(second(X[0]), first(X[0]))
    assert second.as_text() and second.memory_analysis().output_size_in_bytes >= 12


SORTS = {
    "sort": lambda x: jnp.cumsum(jnp.sort(x, axis=0), 1),
    "argsort": lambda x: jnp.argsort(x, stable=False, descending=True),
    "median": jnp.median,
    "permutation": lambda x: random.permutation(random.key(0), x, axis=1),
    "top_k": lambda x: lax.top_k(x, 2),
    "keys": lambda x: lax.sort((x, x + 1), num_keys=2),
}


@pytest.mark.parametrize("name", SORTS)
def test_sorts_that_have_run_are_saved(name: str) -> None:
    f = xlamini.jit(SORTS[name])
    wanted = f(X)
    program = f.lower(X).compile()  # the program that has run
    same(program(X), wanted)
    same(again(program)(X), wanted)
    same(serialize_executable.deserialize_and_load(*serialize_executable.serialize(program))(X), wanted)
    changed = f.lower(X).compile({"xla_cpu_enable_fast_math": False})
    same(changed(X), wanted)
    same(again(again(changed))(X), wanted)


def test_programs_from_the_cache_are_saved(tmp_path: Path, no_cache: None) -> None:
    config.update("compilation_cache_dir", str(tmp_path))
    for _ in range(2):
        program = compiled(lambda x: jnp.cumsum(jnp.tanh(x)) + 2, X[0])
        same(again(program)(X[0]), program(X[0]))


class Moments(NamedTuple):
    mean: Any
    spread: Any


Ordered = collections.OrderedDict


def test_structures() -> None:
    export.register_namedtuple_serialization(Moments, serialized_name="tests.Moments")
    tree = ({1: 0, 0: [None, ()]}, {"b": 0, "a": 0}, Ordered(z=0, y=(0,)), Moments(0, [0]), {True: 0}, {1.5: 0})
    found = tree_util.tree_structure(tree)
    assert treedef_json.read(json.loads(json.dumps(treedef_json.written(found, "this")))) == found
    program = compiled(lambda m: Moments(m.mean + 1, m.spread), Moments(1.0, 2))
    same(again(program)(Moments(1.0, 2)), program(Moments(1.0, 2)))


class Tagged:
    def __init__(self, tag: str, value: Any):
        self.tag, self.value = tag, value


def test_registered_nodes() -> None:
    tree_util.register_pytree_node(Tagged, lambda t: ((t.value,), t.tag), lambda tag, values: Tagged(tag, *values))
    export.register_pytree_node_serialization(
        Tagged, serialized_name="tests.Tagged", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    )
    found = again(compiled(lambda t: Tagged("result", t.value + 1), Tagged("a", 1.0)))(Tagged("a", 1.0))
    assert (found.tag, float(found.value)) == ("result", 2.0)


def test_nodes_made_by_another_function() -> None:
    export.register_pytree_node_serialization(
        collections.defaultdict, serialized_name="tests.defaultdict",
        serialize_auxdata=lambda aux: json.dumps(aux[1]).encode(),
        deserialize_auxdata=lambda data: tuple(json.loads(data)),
        from_children=lambda keys, children: collections.defaultdict(list, zip(keys, children, strict=True)),
    )  # fmt: skip
    tree = tree_util.tree_structure(collections.defaultdict(list, a=1, b=(2, 3)))
    assert treedef_json.read(treedef_json.written(tree, "this")) == tree


def test_structures_apart() -> None:
    program = compiled(lambda p: Unregistered(p.a + 1), Unregistered(1.0))
    blob, in_tree, out_tree = serialize_executable.serialize(program)
    found = serialize_executable.deserialize_and_load(blob, in_tree, out_tree, backend="cpu")
    same(found(Unregistered(1.0)), program(Unregistered(1.0)))
    devices = xlamini.devices()
    assert serialize_executable.deserialize_and_load(blob, in_tree, out_tree, execution_devices=devices)(
        Unregistered(2.0)
    ).a == 3.0  # fmt: skip


class Unregistered(NamedTuple):
    a: Any


# What is refused.


@pytest.fixture(scope="module")
def blob() -> bytes:
    return compiled(lambda x: x * 2, 1.0).serialize()


def test_every_damaged_byte_is_noticed(blob: bytes) -> None:
    for offset in [*range(150), *range(150, len(blob), 53), len(blob) - 1]:
        with pytest.raises(LoadError, match=r"^load: .* (does not begin as|has another checksum)"):
            xlamini.load(blob[:offset] + bytes([blob[offset] ^ 0x10]) + blob[offset + 1 :])


@pytest.mark.parametrize("length", [0, 10, 100, 2000, -1])
def test_truncated_files_are_noticed(blob: bytes, length: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.bin"
    path.write_bytes(blob[:length])
    with pytest.raises(LoadError, match=rf"^load: {path}: it (does not begin as|has another checksum)"):
        xlamini.load(path)


def changed(blob: bytes, **changes: Any) -> bytes:
    """A whole file that says something else."""
    header, body = compiled_file.FILE.unpacked(blob)
    return compiled_file.FILE.packed({**header, **changes}, body)


def at_home(blob: bytes, **changes: Any) -> bytes:
    return changed(blob, home={**compiled_file.FILE.unpacked(blob)[0]["home"], **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"jaxlib": "0.9.1"}, r"compiled by jaxlib 0\.9\.1, but here is jaxlib .*; compile it again here"),
        ({"kind": "abacus"}, r"compiled for cpu \(abacus\), but here is cpu"),
        ({"platform": "cuda", "kind": "NVIDIA H200", "processor": None}, r"compiled for cuda \(NVIDIA H200\), but "),
        ({"platform": "abacus", "kind": "abacus", "processor": None}, "compiled for abacus, but "),
    ],
)
def test_other_places(blob: bytes, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(LoadError, match=said):
        xlamini.load(at_home(blob, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"instructions": ["avx99", "sse2"]}, "for another processor, .*; this one has no avx99; compile"),
        ({"machine": "mips"}, "this one has no instructions of mips"),
        ({"instructions": [], "name": "arm64 of desk"}, "for another processor, arm64 of desk; compile"),
    ],
)
def test_other_processors(blob: bytes, changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "instruction_sets", lambda: ["sse2"])
    here = machine_match.requirements_of(xlamini.devices()[0]).processor
    with pytest.raises(LoadError, match=said):
        xlamini.load(at_home(blob, processor={**(here or {}), **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": [3]}, {"sizes": [-1, 1]}, {"sizes": None}, {"signature": {}}, {"signature": None}, {"home": None},
        {"home": {}}, {"captured": [["float32", [2], False]]}, {"captured": [["object", [2], False]]},
        {"program": {"in_avals": [["void", [], False]]}}, {"program": {"in_avals": 3, "out_avals": []}},
    ],
)  # fmt: skip
def test_headers_that_lie(blob: bytes, changes: dict[str, Any]) -> None:
    with pytest.raises(LoadError, match=r"^load: "):
        xlamini.load(changed(blob, **changes))


@pytest.mark.parametrize("tree", [{"node": ["os.system", "", []]}, {"eval": []}, [], {"dict": [["a"]]}, "x", 3, {}])
def test_structures_that_lie(blob: bytes, tree: Any) -> None:
    signature = compiled_file.FILE.unpacked(blob)[0]["signature"]
    with pytest.raises(LoadError, match=r"^load: "):
        xlamini.load(changed(blob, signature={**signature, "in_tree": tree}))


def test_code_that_is_none(blob: bytes) -> None:
    header, _ = compiled_file.FILE.unpacked(blob)
    with pytest.raises(LoadError, match="jaxlib cannot load its machine code"):
        xlamini.load(compiled_file.FILE.packed({**header, "sizes": [4]}, b"code"))


def test_another_format(blob: bytes) -> None:
    with pytest.raises(LoadError, match="it is in format 9, not 1"):
        xlamini.load(blob.replace(b"format 1\n", b"format 9\n", 1))


def test_nothing_is_unpickled(blob: bytes) -> None:
    assert b"pickle" not in blob
    sources = (ROOT / "xlamini/staging/aot").glob("*.py")
    assert [path.name for path in sources if "import pickle" in path.read_text()] == []


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, link = tmp_path / "step", tmp_path / "link"
    program, other = compiled(lambda x: x * 2, 1.0), compiled(lambda x: x * 3, 1.0)
    program.save(path)
    link.symlink_to(path)

    def full(*args: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(file_format.os, "replace", full)
        with pytest.raises(OSError, match="no space left"):
            other.save(link)
    assert xlamini.load(path)(2.0) == 4
    other.save(link)
    assert link.is_symlink()
    assert xlamini.load(path)(2.0) == 6
    assert sorted(tmp_path.iterdir()) == [link, path]


@pytest.mark.parametrize(
    "changes",
    [
        {"kept": [True, True]},
        {"kept": [1]},
        {"donated": [3]},
        {"donated": ["0"]},
        {"in_avals": [["float32", [3], False]]},
        {"out_avals": [["float32", [2], False]]},
        {"place": {"axes": []}},
    ],
)
def test_a_header_is_compared_with_its_program(changes: dict[str, Any]) -> None:
    header, body = compiled_file.FILE.unpacked(compiled(lambda x: x * 2, 1.0).serialize())
    with pytest.raises(LoadError, match=r"^load: "):
        xlamini.load(compiled_file.FILE.packed({**header, "program": {**header["program"], **changes}}, body))


def test_machine_code_for_other_arrays_is_refused() -> None:
    header, _ = compiled_file.FILE.unpacked(compiled(lambda x: x * 2, np.ones(3, np.float32)).serialize())
    _, body = compiled_file.FILE.unpacked(compiled(lambda x: x * 2, 1.0).serialize())
    with pytest.raises(LoadError, match="takes or returns other arrays than its header says"):
        xlamini.load(compiled_file.FILE.packed({**header, "sizes": [len(body)]}, body))
