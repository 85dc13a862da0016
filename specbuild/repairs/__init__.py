"""Repairs: edits of Recipes that cure Failures, found in package indexes, in the Repo's own words, and by rules."""

from __future__ import annotations

from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.registry import repairs_for

__all__ = ["Case", "Repair", "repairs_for"]
