"""Every row of tests/rows lowers and compiles for a TPU and a GPU: many rows in one program.

Where a program does not compile, halves of it are tried until the rows are found that are to blame.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row
from tests.support import checks
from xlamini.runtime.targets.topology import Target

TOGETHER = 40
"""Rows of one program: more take longer than as many programs, fewer pay for each program's start."""

NO_KERNEL = "the platform has no kernel for it"
NO_EIG = "eigenvalues of matrices that are not symmetric need LAPACK or cuSOLVER"
NO_SCHUR = "Schur and Hessenberg forms need LAPACK"
FOLDED = "XLA works the SVD of the row's constant matrix out while it compiles, for minutes"

_SCHUR = """
    lax.linalg.hessenberg lax.linalg.schur scipy.linalg.funm scipy.linalg.hessenberg scipy.linalg.rsf2csf
    scipy.linalg.schur scipy.linalg.sqrtm
"""
_TPU = "geqp3 lax.linalg.ormqr lax.linalg.tridiagonal scipy.linalg.qr"
_EIG = "lax.linalg.eig numpy.linalg.eig numpy.linalg.eigvals numpy.roots"
SCHUR = dict.fromkeys((*_SCHUR.split(), "scipy.linalg.solve_sylvester: schur"), NO_SCHUR)
REFUSED = {
    "tpu": {
        **SCHUR,
        **dict.fromkeys((*_TPU.split(), "lax.linalg.qr: pivoting", "lax.linalg.svd: QR"), NO_KERNEL),
        **dict.fromkeys((*_EIG.split(), "lax.linalg.eig: values", "scipy.linalg.solve_sylvester: eigen"), NO_EIG),
    },
    "cuda": SCHUR,
}
"""What an accelerator cannot do, and why; a test sees that it is refused."""
NOT_TRIED = {"tpu": {"numpy.polyfit": FOLDED}, "cuda": {}}


MORE = ("bfloat16", "complex64", "int8")


class Case(NamedTuple):
    """A row in one dtype."""

    row: Row
    dtype: str

    @property
    def wide(self) -> bool:
        return not isinstance(checks.wide(self.row, self.dtype), contextlib.nullcontext)


def usual_dtype(row: Row) -> str:
    """Single precision also where values are compared in double precision only."""
    first = next((d for d in ("float32", "float64") if d in row.dtypes), row.dtypes[0])
    return {"float64": "float32", "complex128": "complex64"}.get(first, first)


def is_basic(row: Row) -> bool:
    """Whether it is a row of `lax`, whose operations all others are made of."""
    return "." not in row.name or row.name.startswith("lax.linalg")


def batches() -> Iterator[list[Case]]:
    """All rows in their usual dtypes, those of `lax` in some others too; those that need 64-bit dtypes apart."""
    rows = all_rows()
    cases = [Case(row, usual_dtype(row)) for row in rows]
    cases += [Case(row, d) for d in MORE for row in filter(is_basic, rows) if d in row.dtypes and d != usual_dtype(row)]
    for wide in (False, True):
        alike = [case for case in cases if case.wide == wide]
        yield from (alike[i : i + TOGETHER] for i in range(0, len(alike), TOGETHER))


BATCHES = list(batches())


def compile_together(cases: Sequence[Case], target: Target) -> None:
    """One program with the results of all cases."""
    with checks.wide(cases[0].row, cases[0].dtype):
        arguments = [case.row.arguments(case.row.samples[0], case.dtype, case.row.rng()) for case in cases]

        def every(arguments: Sequence[Sequence[Any]]) -> list[Any]:
            return [case.row.op(*given) for case, given in zip(cases, arguments, strict=True)]

        xlamini.jit(every).trace(arguments).lower(target=target).compile()


def failures(cases: Sequence[Case], target: Target) -> list[str]:
    """The cases that do not compile, each with the error; the culprits of a failing batch are found by halves."""
    try:
        compile_together(cases, target)
    except Exception as error:
        if len(cases) == 1:
            return [f"{cases[0].row.name} of {cases[0].dtype}: {type(error).__name__}: {str(error)[:300]}"]
        middle = len(cases) // 2
        return failures(cases[:middle], target) + failures(cases[middle:], target)
    return []


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES, ids=lambda cases: f"{cases[0].dtype}: {cases[0].row} to {cases[-1].row}")
def test_rows_compile(batch: list[Case], target: Target) -> None:
    left_out = REFUSED[target.platform] | NOT_TRIED[target.platform]
    able = [case for case in batch if case.row.name not in left_out]
    assert failures(able, target) == []


def test_what_cannot_be_compiled_is_refused(target: Target) -> None:
    refused = REFUSED[target.platform]
    cases = [Case(row, usual_dtype(row)) for row in all_rows() if row.name in refused]
    assert [case.row.name for case in cases if not failures([case], target)] == []
    assert len(cases) == len(refused)
