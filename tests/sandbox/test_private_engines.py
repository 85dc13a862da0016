"""The engines of tests leave nothing on the machine, also when something still runs in them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import anyio
import pytest

from specbuild.errors import SandboxUnavailableError
from specbuild.sandbox.cgroups import hierarchies
from specbuild.testing.daemons import mounts_below, running
from specbuild.testing.engines import PrivateEngine, docker_engine, podman_engine
from specbuild.testing.trial import new_marker, processes, until

Start = Callable[[], AbstractContextManager[PrivateEngine]]


@pytest.mark.engine
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("start", [docker_engine, podman_engine])
def test_nothing_is_left_of_an_engine_that_ends_while_a_container_runs(start: Start, tiny: Path) -> None:
    marker = new_marker()
    with start() as engine:
        container = sleeping(engine, tiny, marker)
        folder = engine.socket.parent
        anyio.run(until, lambda: len(processes(marker)) == 1)
        assert control_groups(container)
        assert mounts_below(folder)
        assert working_on(folder)
        assert Path("/sys/class/net", engine.bridge).exists()
    assert processes(marker) == []
    assert control_groups(container) == []
    assert not folder.exists()
    assert mounts_below(folder) == []
    assert working_on(folder) == []
    assert not Path("/sys/class/net", engine.bridge).exists()
    assert rules_of(engine.bridge) == []


def sleeping(engine: PrivateEngine, tiny: Path, marker: str) -> str:
    """The id of a container that runs."""
    image = str(engine.ask("POST", "images/create?fromSrc=-", data=tiny.read_bytes())["status"])
    body = {"Image": image, "Cmd": ["/bin/sleep", marker], "StopSignal": "SIGKILL"}
    made = str(engine.ask("POST", "containers/create", body)["Id"])
    engine.ask("POST", f"containers/{made}/start")
    return made


def control_groups(container: str) -> list[Path]:
    return [path for hierarchy in hierarchies() for path in hierarchy.root.rglob(f"*{container}*")]


def working_on(folder: Path) -> list[str]:
    """The command lines of processes that were told of a folder."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text("utf-8", "replace")
        except OSError:  # it has ended meanwhile
            continue
        found += [words] if str(folder) in words else []
    return found


def rules_of(bridge: str) -> list[str]:
    listed = [
        subprocess.run(["iptables", "-t", table, "-S"], capture_output=True, text=True, check=True).stdout
        for table in ("nat", "filter")
    ]
    return [rule for text in listed for rule in text.splitlines() if bridge in rule.split()]


@pytest.mark.engine
@pytest.mark.root
@pytest.mark.parametrize("start", ["docker_engine", "podman_engine"])
def test_root_without_its_rights_is_told_that_there_is_no_engine(start: str) -> None:
    code = f"from specbuild.testing.engines import {start}\nwith {start}(): pass"
    rightless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", code]
    done = subprocess.run(rightless, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "SandboxUnavailableError: " in done.stderr
    assert "not permitted" in done.stderr


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no permission >&2; exit 3"]
    with (
        pytest.raises(SandboxUnavailableError, match="did not start: no permission"),
        running(command, tmp_path / "log", {}, lambda: False),
    ):
        pass
