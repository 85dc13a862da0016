"""What reading output costs: lines and bytes a second, and whether memory stays flat.

    python -m bench readers [--megabytes N] [--json FILE]

Streams that are made from a seed are read line by line: `log` is what builds print, with a failure now and then;
`random` is bytes without meaning; `failing` has an example of a signature on every line, with a new reader whenever one
has reported nearly as much as it may; `adversarial` are lines of what signatures look for, repeated, as long as lines
are looked at. Each is read at half of the size, too: linear means
that the whole takes twice as long. Time is of the processor. Memory is the most that
the process held beyond what it held before reading.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from specbuild.predictors import FAMILIES, reader
from specbuild.predictors.reader import MOST
from specbuild.predictors.text import LINE

_BLOCK = 5_000
"""Lines that are made once and then repeated, so that making them costs nothing while reading is measured."""
_LOG = (
    "Collecting package-{n}==1.{n}.0 (from -r requirements.txt (line {n}))",
    "  Downloading package_{n}-1.{n}.0-py3-none-any.whl (145 kB)",
    "Requirement already satisfied: package-{n} in /opt/venv/lib/python3.11/site-packages (1.{n})",
    "gcc -pthread -O2 -Wall -fPIC -Iinclude -I/usr/include/python3.11 -c src/module_{n}.c -o build/src/module_{n}.o",
    "src/module_{n}.c:{n}:5: warning: unused variable 'left' [-Wunused-variable]",
    "tests/test_module_{n}.py::test_case_{n} PASSED                                   [ 42%]",
    "checking for function_{n} in -lm... yes",
    "Get:{n} http://deb.example/debian bookworm/main amd64 libpackage{n} amd64 1.{n}-1 [123 kB]",
    "Unpacking libpackage{n}:amd64 (1.{n}-1) ...",
    "   Compiling crate-{n} v0.{n}.1",
)


@dataclass(frozen=True)
class Figure:
    """One stream, read once."""

    stream: str
    megabytes: float
    lines: int
    seconds: float
    failures: int
    grown_kilobytes: int
    """Of the most memory held."""


def examples() -> list[str]:
    """Every line of every example of a signature."""
    found = (example for signatures in FAMILIES.values() for one in signatures for example, _ in one.examples)
    return [line for example in found for line in example.split("\n")]


def log(source: random.Random) -> str:
    """A line as builds print them; one in 2,000 tells of a failure."""
    if source.random() < 1 / 2000:
        return source.choice(examples())
    return source.choice(_LOG).format(n=source.randrange(1000))


def noise(source: random.Random) -> str:
    """A line without meaning."""
    return source.randbytes(source.randrange(160)).decode("latin-1").replace("\n", " ")


def failing(source: random.Random) -> str:
    """A line that tells of a failure."""
    return source.choice(examples())


def adversarial(source: random.Random) -> str:
    """A line of nothing but what signatures look for."""
    literals = [literal for signatures in FAMILIES.values() for one in signatures for literal in one.literals]
    glue = ["'", '"', ": ", "a.", "/", "error: "]
    piece = "".join(source.choice([*literals, *glue]) for _ in range(source.randrange(1, 9)))
    return (piece * (LINE // len(piece) + 1))[:LINE]


STREAMS: dict[str, Callable[[random.Random], str]] = {
    "log": log,
    "random": noise,
    "failing": failing,
    "adversarial": adversarial,
}


def repeated(block: list[str], size: int) -> Iterator[str]:
    """Lines of the block, over and over, until `size` characters were given."""
    while True:
        for line in block:
            yield line
            size -= len(line) + 1
            if size <= 0:
                return


def measure(stream: str, megabytes: float) -> Figure:
    """Read so much of a stream."""
    source = random.Random(stream)
    make = STREAMS[stream]
    block = [make(source) for _ in range(_BLOCK)]
    one = reader()
    failures = lines = told = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    for line in repeated(block, int(megabytes * 1e6)):
        found = len(one.feed(line))
        failures, told, lines = failures + found, told + found, lines + 1
        if told > MOST * 0.8:
            one, told = reader(), 0
    failures += len(one.finish())
    seconds = time.process_time() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return Figure(stream, megabytes, lines, seconds, failures, grown)


def table(figures: list[Figure]) -> str:
    """As Markdown."""
    rows = [
        "| stream | MB | lines | CPU seconds | lines/s | MB/s | failures | memory grown, KB |",
        "|---|" + "---|" * 7,
    ]
    rows += [
        f"| {one.stream} | {one.megabytes:g} | {one.lines:,} | {one.seconds:.2f} | {one.lines / one.seconds:,.0f} "
        f"| {one.megabytes / one.seconds:.1f} | {one.failures} | {one.grown_kilobytes} |"
        for one in figures
    ]
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench readers", description="What reading output costs.")
    parser.add_argument("--megabytes", type=float, default=200.0, help="size of each stream (default: %(default)s)")
    parser.add_argument("--streams", default=",".join(STREAMS), help="which, in this order (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    names = options.streams.split(",")
    if unknown := set(names) - set(STREAMS):
        parser.error(f"unknown streams: {', '.join(sorted(unknown))}; there are {', '.join(STREAMS)}")
    figures: list[Figure] = []
    for name in names:
        for size in (options.megabytes / 2, options.megabytes):
            print(f"reading {size:g} MB of {name}", file=sys.stderr, flush=True)
            figures.append(measure(name, size))
    print(table(figures))
    if options.json:
        machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "load": os.getloadavg()}
        report = {"schema_version": 1, "machine": machine, "figures": [asdict(one) for one in figures]}
        options.json.write_text(json.dumps(report, indent=2))
    return 0
