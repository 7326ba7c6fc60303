"""Record what JAX gives for the programs: `python -m tests.ecosystem.record [NAME...]`, in the environment with JAX."""
from __future__ import annotations

import argparse

from tests.ecosystem.outcomes import LIBRARIES, functions, named, programs, store


def record(library: str) -> None:
    made = functions(programs(library)).items()
    store(library, {name: x for program, f in made for name, x in named(f(), program)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="NAME", help="a file of programs/; all if none is given")
    for library in parser.parse_args().libraries or LIBRARIES:
        record(library)


if __name__ == "__main__":
    main()
