"""Records the buffers of JAX's sparse arrays for the expressions of sparse_arrays.py.

Run it where JAX is installed; the test needs only the file it writes:

    python tests/golden/record_sparse.py
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import jax
from jax.experimental import sparse
from sparse_arrays import EXPRESSIONS, described, names

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    known = names(jax, sparse)
    records = {text: described(eval(text, known)) for text in EXPRESSIONS}
    lines = ",\n".join(f"{json.dumps(text)}: {json.dumps(record)}" for text, record in records.items())
    Path(__file__).with_name("sparse_arrays.json").write_text("{\n" + lines + "\n}\n")
