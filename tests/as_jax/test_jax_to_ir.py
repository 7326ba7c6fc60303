"""`python -m jax.tools.jax_to_ir` writes a function as a program of XLA."""
from __future__ import annotations

from pathlib import Path

from tests.support.children import passes, python

PROGRAM = "def fn(x, y, z):\n    return x @ y / z\n"
ARGUMENTS = """--fn program.fn --input_shapes [("y","f32[16,32]"),("x","f32[8,16]")] --constants {"z":2.5}""".split()


def test_the_command_writes_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    files = ["--ir_dest", str(tmp_path / "fn.pb"), "--ir_human_dest", str(tmp_path / "fn.txt")]
    ran = python("-m", "xlamini", "run", "-m", "jax.tools.jax_to_ir", *ARGUMENTS, *files, path=tmp_path)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "fn.txt").read_text()
    assert "{(f32[16,32]{1,0}, f32[8,16]{1,0})->f32[8,32]{1,0}}" in text and "constant(2.5)" in text
    assert b"dot" in (tmp_path / "fn.pb").read_bytes()


def test_types_as_text_and_what_is_refused() -> None:
    passes("""
    import xlamini.as_jax
    import jax, numpy as np, pytest
    from jax.tools.jax_to_ir import jax_to_hlo, jax_to_ir, parse_shape_str

    for text, shape, dtype in [("pred[]", (), "bool"), ("bf16[2, 3]", (2, 3), "bfloat16"), ("s8[4]", (4,), "int8")]:
        aval = parse_shape_str(text)
        assert (aval.shape, aval.dtype) == (shape, jax.dtypes.canonicalize_dtype(dtype))
    with pytest.raises(ValueError, match="a type is written as .*, got 'f32'"):
        parse_shape_str("f32")
    types = [("x", jax.ShapeDtypeStruct((2,), np.float32))]
    with pytest.raises(ValueError, match="x is in both input_shapes and constants"):
        jax_to_hlo(lambda x: x, types, constants={"x": 1})
    with pytest.raises(NotImplementedError, match="format must be 'HLO', got 'TF'"):
        jax_to_ir(lambda x: x, types, format="TF")
    """)
