"""A registry for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specbuild.testing.registry import TestRegistry, registry


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestRegistry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running
