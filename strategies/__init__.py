"""Strategies: ways from Facts to Recipes, one module a route or ecosystem.

A strategy sees Facts, bases and knowledge, never a sandbox. It yields Candidates, the engine runs them. Third-party
strategies come by the entry point group `specbuild.strategies`.
"""

from __future__ import annotations

from specbuild.strategies.registry import left_out, load, names, propose

__all__ = ["left_out", "load", "names", "propose"]
