"""What the words mean by which a user names a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.repo.source import Address, parse_address

SHA = "0" * 40


@pytest.mark.parametrize(
    ("spec", "kind", "location", "revision"),
    [
        ("pypi:attrs==25.1.0", "pypi", "attrs", "25.1.0"),
        ("pypi:attrs", "pypi", "attrs", None),
        ("pypi:zope.interface == 5.0", "pypi", "zope.interface", "5.0"),
        ("https://example.org/a/b", "git", "https://example.org/a/b", None),
        ("https://example.org/a/b.git@v1.0", "git", "https://example.org/a/b.git", "v1.0"),
        ("git+https://example.org/a/b@feature/x#egg=b", "git", "https://example.org/a/b", "feature/x"),
        ("https://me:pw@example.org/a/b", "git", "https://me:pw@example.org/a/b", None),
        ("https://me:pw@example.org/a/b@v1", "git", "https://me:pw@example.org/a/b", "v1"),
        ("https://example.org/b.git@@scope/p@1.0", "git", "https://example.org/b.git", "@scope/p@1.0"),
        ("https://example.org/b@", "git", "https://example.org/b@", None),
        ("ssh://git@example.org:2222/a/b@" + SHA, "git", "ssh://git@example.org:2222/a/b", SHA),
        ("git+ssh://git@example.org/b", "git", "git+ssh://git@example.org/b", None),
        ("git@example.org:a/b.git", "git", "git@example.org:a/b.git", None),
        ("git@example.org:a/b@v1", "git", "git@example.org:a/b", "v1"),
        ("example.org:b", "git", "example.org:b", None),
        ("file:///srv/p@v1", "git", "file:///srv/p", "v1"),
        ("https://example.org/a-1.0.tar.gz?x=1", "archive", "https://example.org/a-1.0.tar.gz?x=1", None),
        ("git+https://example.org/a.zip", "git", "https://example.org/a.zip", None),
        ("file:///srv/a-1.0.zip", "archive", "file:///srv/a-1.0.zip", None),
        ("./none/such", "folder", "none/such", None),
    ],
)
def test_addresses_are_understood(spec: str, kind: str, location: str, revision: str | None) -> None:
    found = parse_address(spec)
    assert (found.kind, found.location, found.revision) == (kind, location, revision)
    assert found.origin == spec


def test_what_exists_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pypi:x").mkdir()
    Path("a@b").mkdir()
    Path("plain").write_text("x")
    assert parse_address("pypi:x") == Address("pypi:x", "folder", "pypi:x")
    assert parse_address("a@b").kind == "folder"
    assert parse_address("plain").kind == "archive"


def test_a_local_folder_may_have_a_revision(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    found = parse_address(f"{tmp_path}/p@v1.0")
    assert (found.kind, found.location, found.revision) == ("git", f"{tmp_path}/p", "v1.0")
