"""Foresight: which Failures a Recipe will run into, told before anything of it has run."""

from __future__ import annotations

from specbuild.predictors.foresee.contract import Foreseen, Foreseer, Outlook

__all__ = ["Foreseen", "Foreseer", "Outlook"]
