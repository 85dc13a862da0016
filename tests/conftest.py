"""What tests of several folders share: a base, the container engines, and which tests run beside which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import HealthCheck, settings

from specbuild.bases.debian import DebianBases

if TYPE_CHECKING:
    from specbuild.testing.engines import PrivateEngine

settings.register_profile("anywhere", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("anywhere")
# How long examples take says how busy a machine is; the first of a fresh checkout also make hypothesis' own tables.

_GROUPS = {
    "podman": r"/test_(conformance_podman|podman_backend)\.|/test_engine(s|_replay)\..*\[podman",
    "docker": r"/test_(conformance_docker|docker_backend)\.|/test_engine(s|_replay)\..*\[docker",
    "debian": r"/test_(debian_bases|journey)\.",
    "machine": r"/test_(caches|conformance_overlay|engine_death|escapes_\w+|image_layers|limits|overlay_archive"
    r"|overlay_backend|random_real_races|real_race|real_services|two_hundred_forks)\.",
}
"""Tests that run one after another: those on one engine or one base, and those that make users or kill engines, after
which they look at the whole machine. All others of a module are a group, too. The longest begin first."""


def group_of(nodeid: str) -> str:
    """The group of a test."""
    groups = (name for name, pattern in _GROUPS.items() if re.search(pattern, nodeid))
    return next(groups, nodeid.partition("::")[0])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests are shared out, in the order in which groups begin."""
    if hasattr(config, "workerinput"):
        ranks = {name: rank for rank, name in enumerate(_GROUPS)}
        items.sort(key=lambda item: ranks.get(group_of(item.nodeid), len(ranks)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `-n NUMBER`, each worker takes one group after another."""
    config.option.loadscopereorder = False
    scheduler: Any = import_module("xdist.scheduler").LoadScopeScheduling(config, log)  # it has no types
    scheduler._split_scope = group_of  # what its own variants override
    return scheduler


@pytest.fixture(scope="session")
def debian_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with a bookworm that was really made in it."""
    cache = tmp_path_factory.mktemp("debian")
    anyio.run(DebianBases(cache).resolve, "debian:bookworm")
    return cache


@pytest.fixture(scope="session")
def docker() -> Iterator[PrivateEngine]:
    """A Docker engine."""
    from specbuild.testing.engines import docker_engine  # aiodocker takes a while to import

    with docker_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def podman() -> Iterator[PrivateEngine]:
    """Podman's Docker-compatible service."""
    from specbuild.testing.engines import podman_engine  # aiodocker takes a while to import

    with podman_engine() as engine:
        yield engine
