"""Foresight: which Failures a Recipe will run into, told before anything of it has run."""

from __future__ import annotations

from specbuild.predictors.foresee.contract import Foreseen, Foreseer, NoIndex, Outlook, Releases
from specbuild.predictors.foresee.everything import foresee

__all__ = ["Foreseen", "Foreseer", "NoIndex", "Outlook", "Releases", "foresee"]
