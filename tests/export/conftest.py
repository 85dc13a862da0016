"""Engines for the tests of exports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specbuild.testing.clients import Client, docker_client, podman_client
from specbuild.testing.engines import PrivateEngine, docker_engine, podman_engine


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Iterator[PrivateEngine]:
    """Each of the engines, without a network."""
    with docker_engine() if request.param == "docker" else podman_engine() as running:
        yield running


@pytest.fixture(scope="session", params=["docker", "podman"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Each of the engines as a user has them: by a command line that variables lead to it."""
    with docker_client() if request.param == "docker" else podman_client() as found:
        yield found
