"""The command line. Importing it imports click and nothing heavier; a command loads what it needs when it runs."""

from __future__ import annotations

from specbuild.cli.app import main

__all__ = ["main"]
