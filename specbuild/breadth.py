"""How much of a race is pursued at once: from the sequential agent to everything that pays."""

from __future__ import annotations

from enum import StrEnum


class Breadth(StrEnum):
    """How much is pursued at once."""

    RECIPE = "recipe"
    """One Recipe at a time: the sequential agent."""
    STRATEGY = "strategy"
    """One strategy's Recipe and its repairs."""
    ALL = "all"
    """Whatever pays."""
