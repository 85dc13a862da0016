"""The indexes of a whole release, as apt fetches and checks them from the host's own mirror."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from specbuild.bases.apt_sources import debian_mirrors, host_sources
from specbuild.knowledge.index_file import write_index
from specbuild.knowledge.kinds import Ecosystem, PathKind
from specbuild.knowledge.query import Knowledge

R = "bookworm"
ARCHITECTURE = "amd64"
APT_CONF = """\
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "{root}/lists";
Dir::Cache "{root}/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb {{
  MetaKey "$(COMPONENT)/Contents-$(ARCHITECTURE)"; ShortDescription "Contents"; Description "Contents";
  KeepCompressed "true";
}};
"""


def fetch_indexes(root: Path) -> tuple[list[Path], list[Path]]:
    """Contents and Sources of the release, unpacked: 700 MB."""
    mirrors = debian_mirrors(host_sources())
    assert mirrors is not None
    signed = f" signed-by={mirrors.keyrings[0]}" if mirrors.keyrings else ""
    (root / "sources.list").write_text(
        f"deb [arch={ARCHITECTURE}{signed}] {mirrors.main} {R} main\ndeb-src [{signed}] {mirrors.main} {R} main\n"
    )
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True)
    (root / "apt.conf").write_text(APT_CONF.format(root=root))
    env = {**os.environ, "APT_CONFIG": str(root / "apt.conf")}
    subprocess.run(["apt-get", "update", "-qq"], env=env, check=True, timeout=240)
    contents, sources = [unpack(root, pattern) for pattern in ("*_Contents-*", "*_Sources*")]
    return contents, sources


def unpack(root: Path, pattern: str) -> list[Path]:
    found: list[Path] = []
    for path in sorted((root / "lists").glob(pattern)):
        found.append(root / path.name.partition("dists_")[2].replace(path.suffix, ""))
        with found[-1].open("wb") as file:
            subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], stdout=file, check=True, timeout=120)
    return found


@pytest.mark.network
@pytest.mark.slow
def test_a_whole_release_fits_a_small_index_that_knows_what_projects_need(tmp_path: Path) -> None:
    contents, sources = fetch_indexes(tmp_path)
    known = Knowledge(tmp_path, architecture=ARCHITECTURE)
    known.index(R).parent.mkdir()
    write_index(known.index(R), contents, sources)
    for path in (*contents, *sources):
        path.unlink()
    assert known.index(R).stat().st_size < 64 << 20
    asked = {
        (PathKind.HEADER, "lber.h"): "libldap-dev",
        (PathKind.HEADER, "stdio.h"): "libc6-dev",
        (PathKind.HEADER, "Python.h"): "libpython3.11-dev",
        (PathKind.PKG_CONFIG, "cairo"): "libcairo2-dev",
        (PathKind.SHARED_LIBRARY, "libGL.so.1"): "libgl1",
        (PathKind.LINK_LIBRARY, "pq"): "libpq-dev",
        (PathKind.PROGRAM, "pg_config"): "libpq-dev",
        (PathKind.PROGRAM, "aclocal"): "automake",
        (PathKind.CMAKE, "GTest"): "libgtest-dev",
        (PathKind.PYTHON_MODULE, "yaml"): "python3-yaml",
    }
    found = {question: known.owner(*question, release=R)[0].package for question in asked}
    assert found == asked
    needs = known.build_needs(Ecosystem.PYTHON, "lxml", release=R)
    assert needs is not None
    assert {"libxml2-dev", "libxslt1-dev"} <= set(needs.libraries)
    assert known.distributions("bs4", release=R) == ("beautifulsoup4",)
    assert known.development("OpenSSL", release=R)[0] == "libssl-dev"
