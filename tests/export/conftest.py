"""Engines for the tests of exports: Docker and Podman, each through its own client."""

from __future__ import annotations

import pytest

from specbuild.testing.engines import PrivateEngine


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> PrivateEngine:
    """Each of the engines."""
    running: PrivateEngine = request.getfixturevalue(request.param)
    return running
