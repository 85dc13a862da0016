"""`examine` looks at the real machine and says what to do about what is missing."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import anyio
import pytest

from specbuild.config import Settings
from specbuild.doctor import examine
from specbuild.sandbox.contract import Finding

pytestmark = pytest.mark.sandbox


def findings(cache: Path, **given: object) -> dict[str, Finding]:
    """What is found with that cache folder, by name."""
    return {finding.name: finding for finding in anyio.run(examine, Settings(cache_dir=cache, **given))}  # type: ignore[arg-type]


def test_everything_that_a_build_needs_is_looked_at(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert {
        "system",
        "cores",
        "memory",
        "disk",
        "git",
        "bases",
        "Debian mirror",
        "proxy",
        "certificates",
    } <= found.keys()
    assert any(name.startswith("overlay") for name in found)
    assert all(finding.detail for finding in found.values())


def test_whatever_is_not_ok_comes_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setattr("specbuild.bases.programs.SYSTEM_FOLDERS", (str(empty),))
    found = findings(tmp_path / "cache")
    assert not found["git"].ok
    assert not found["bases"].ok
    assert "mmdebstrap" in found["bases"].hint
    assert all(finding.hint for finding in found.values() if not finding.ok)


def test_the_disk_is_the_one_of_the_cache(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="specbuild-test-") as memory:
        assert "(tmpfs)" in findings(Path(memory))["disk"].detail
    assert "(tmpfs)" not in findings(tmp_path)["disk"].detail or Path("/tmp").is_mount()


def test_no_secret_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:s3cret@proxy.test:1")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://ann:t0ken@index.test/simple")
    found = findings(tmp_path, debian_mirror="http://bob:pa55@mirror.test/debian")
    shown = "".join(f"{finding.detail}{finding.hint}" for finding in found.values())
    assert "proxy.test" in shown
    assert "index.test" in shown
    assert "mirror.test" in shown
    assert not any(secret in shown for secret in ("s3cret", "t0ken", "pa55"))


def test_an_unknown_backend_is_a_finding_with_the_known_ones(tmp_path: Path) -> None:
    found = findings(tmp_path, backend="wishes")["sandbox"]
    assert not found.ok
    assert "overlay" in found.hint


@pytest.mark.parametrize(
    ("host", "told"),
    [
        (
            "unix://{folder}/none",
            r"engine at unix://.*/none \(DOCKER_HOST\) does not answer: No such file or directory",
        ),
        ("tcp://127.0.0.1:9", r"engine at tcp://127.0.0.1:9 \(DOCKER_HOST\) does not answer: Connection refused"),
        ("nonsense", "DOCKER_HOST names an engine at 'nonsense', which is no address"),
    ],
)
def test_an_engine_that_is_named_is_asked(
    host: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host.format(folder=tmp_path))
    found = findings(tmp_path / "cache")["container engines"]
    assert re.search(told, found.detail), found.detail
    assert found.ok, "none is needed where overlay works"
    assert found.hint
