"""`python -m bench NAME [OPTIONS]`."""

from __future__ import annotations

import importlib
import sys

BENCHES = {
    "exports": "bench.exports",
    "foresight": "bench.foresight",
    "forks": "bench.forks",
    "predictors": "bench.predictors",
    "race": "bench.race",
    "readers": "bench.readers",
    "repairs": "bench.repairs",
    "revisions": "bench.revisions",
    "scheduler": "bench.scheduler",
    "simulate": "bench.simulate",
}
"""Each module has a `main(arguments)` that returns the exit status."""


def main(arguments: list[str]) -> int:
    """Run the benchmark that is named first."""
    if not arguments or arguments[0] not in BENCHES:
        print(f"usage: python -m bench {{{','.join(BENCHES)}}} [OPTIONS]", file=sys.stderr)
        return 2
    status: int = importlib.import_module(BENCHES[arguments[0]]).main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
