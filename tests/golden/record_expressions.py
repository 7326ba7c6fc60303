"""Record what JAX gives for expressions/*.txt: `python record_expressions.py [FILE...]` where JAX is installed."""
from __future__ import annotations

import argparse
import json
import warnings

import jax
from expressions import FILES, FOLDER, described, expressions, names, needs_x64


def record(file: str) -> None:
    jax.config.update("jax_enable_x64", needs_x64(file))
    known = names(jax, file)
    lines = []
    for each in expressions(file):
        try:
            lines.append(f"{json.dumps(each.text)}: {json.dumps(described(eval(each.text, known)))}")
        except Exception as error:
            raise SystemExit(f"{file}.txt: {each.text}: {type(error).__name__}: {error}") from error
    (FOLDER / f"{file}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="names without .txt; all if none is given")
    for file in parser.parse_args().files or FILES:
        record(file)


if __name__ == "__main__":
    main()
