"""When downloads of apt are shared, and what sandboxes are told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.config import Settings
from specbuild.downloads import shared_downloads
from specbuild.errors import SandboxError
from specbuild.recipe import BaseRef, Step, StepKind
from specbuild.sandbox.apt_settings import through_relay
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.fakes import Behaviour, FakeBackend
from specbuild.workshop import Surroundings

BASE = BaseRef(name="debian:bookworm", digest="sha256:1")
APT = Step(kind=StepKind.SYSTEM, run="apt-get install x", caches=("apt",))
OURS = "http://token@127.0.0.1:4000"


def conf(surroundings: Surroundings, step: Step = APT) -> str:
    """What apt is told in a sandbox."""
    command = surroundings.command(step, BASE)
    shown = {bind.target: bind.source for bind in command.binds}
    return shown[command.env["APT_CONFIG"]].read_text() if "APT_CONFIG" in command.env else ""


async def test_only_steps_that_share_apts_downloads_are_led_to_the_relay_while_there_is_one(tmp_path: Path) -> None:
    before = Surroundings.of(Settings(cache_dir=tmp_path))
    async with shared_downloads(before, OverlayBackend(tmp_path / "store"), pytest.fail) as surroundings:
        assert 'Acquire::http::Proxy "http://' in conf(surroundings)
        assert "@127.0.0.1:" in conf(surroundings)
        for other in (APT.model_copy(update={"caches": ()}), APT.model_copy(update={"network": False})):
            assert "@127.0.0.1:" not in conf(surroundings, other)
        assert surroundings.relay is not None
        (token,) = (part for part in surroundings.relay.settings.secret_values if part in conf(surroundings))
        assert len(token) >= 32, "it is hidden wherever the host's secrets are"
        binds = {bind.target: bind.source for bind in surroundings.command(APT, BASE).binds}
        file = binds[surroundings.command(APT, BASE).env["APT_CONFIG"]]
    assert not file.exists()


async def test_sandboxes_that_cannot_reach_it_are_not_led_to_it(tmp_path: Path) -> None:
    before = Surroundings.of(Settings(cache_dir=tmp_path))
    async with shared_downloads(before, FakeBackend(lambda command, files: Behaviour()), pytest.fail) as surroundings:
        assert surroundings is before


async def test_where_files_cannot_be_kept_each_sandbox_downloads_for_itself(tmp_path: Path) -> None:
    (tmp_path / "caches").mkdir()
    (tmp_path / "caches" / "apt").write_text("in the way")
    before = Surroundings.of(Settings(cache_dir=tmp_path))
    told: list[str] = []
    async with shared_downloads(before, OverlayBackend(tmp_path / "store"), told.append) as surroundings:
        assert surroundings is before
    assert "downloads of apt are not shared" in told[0]


async def test_errors_of_what_runs_meanwhile_come_through_as_they_are(tmp_path: Path) -> None:
    before = Surroundings.of(Settings(cache_dir=tmp_path))
    with pytest.raises(SandboxError, match="broken"):
        async with shared_downloads(before, OverlayBackend(tmp_path / "store"), pytest.fail):
            raise SandboxError("broken")


def test_http_goes_through_the_relay_and_https_as_before() -> None:
    told = through_relay(
        (
            ("Acquire::http::Proxy", "http://p:1"),
            ("Acquire::http::Proxy::near.example", "DIRECT"),
            ("Acquire::https::Proxy::far.example", "http://q:2"),
            ("Acquire::Retries", "3"),
        ),
        OURS,
        {},
    )
    assert told == (
        ("Acquire::https::Proxy", "http://p:1"),
        ("Acquire::https::Proxy::near.example", "DIRECT"),
        ("Acquire::https::Proxy::far.example", "http://q:2"),
        ("Acquire::Retries", "3"),
        ("Acquire::http::Proxy", OURS),
    )


def test_proxies_of_variables_hold_for_https_too() -> None:
    assert through_relay((), OURS, {"https_proxy": "http://v:3"})[0] == ("Acquire::https::Proxy", "http://v:3")
    assert through_relay((), OURS, {}) == (("Acquire::http::Proxy", OURS),)
