"""Engines for the tests of exports: Docker and Podman, each through its own client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specbuild.testing.clients import Client, docker_client, podman_client
from specbuild.testing.engines import PrivateEngine


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> PrivateEngine:
    """Each of the engines."""
    running: PrivateEngine = request.getfixturevalue(request.param)
    return running


@pytest.fixture(scope="session", params=["docker", "podman"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Each of the engines as a user has them: by a command line that variables lead to it."""
    with docker_client() if request.param == "docker" else podman_client() as found:
        yield found
