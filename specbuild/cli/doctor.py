"""`specbuild doctor`: what works on this machine, and what to do about what does not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from specbuild.cli.output import Output, output_options
from specbuild.errors import SandboxError

if TYPE_CHECKING:
    from specbuild.sandbox.contract import Finding

SCHEMA_VERSION = 1


@click.command(short_help="Look at what works on this machine.")
@output_options()
@click.pass_obj
def doctor(output: Output) -> int:
    """Look at what SpecBuild needs, by a real fork of a sandbox, and say how to get what is missing."""
    from specbuild.cli.interrupts import run_to_end
    from specbuild.config import load_settings
    from specbuild.doctor import examine

    settings = load_settings()
    findings = run_to_end(lambda: examine(settings), output.err)
    healthy = all(finding.ok for finding in findings)
    if output.json:
        found = [asdict(finding) for finding in findings]
        outcome = "healthy" if healthy else "unhealthy"
        output.result_object({"schema_version": SCHEMA_VERSION, "outcome": outcome, "findings": found})
    for finding in findings:
        output.result(*_lines(finding, output))
    return 0 if healthy else SandboxError.exit_code


def _lines(finding: Finding, output: Output) -> list[str]:
    out = output.out
    mark = out.paint(out.symbols.won, "green") if finding.ok else out.paint(out.symbols.lost, "red")
    lines = [f"{mark} {finding.name}: {finding.detail}"]
    if finding.hint:
        lines.append(f"  {out.paint('hint', 'cyan')}: {finding.hint}")
    return lines
