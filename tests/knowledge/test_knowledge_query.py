"""Answers from an index of a small archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.errors import StoreError
from specbuild.knowledge.index_file import write_index
from specbuild.knowledge.kinds import Ecosystem, PathKind
from specbuild.knowledge.pydist import read_pydist
from specbuild.knowledge.query import Knowledge
from specbuild.testing.debian_packages import CONTENTS, CONTENTS_ALL, PYDIST, SOURCES

R = "bookworm"


@pytest.fixture(name="known", scope="module")
def make_index(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    cache = tmp_path_factory.mktemp("cache")
    files = {"Contents-amd64": CONTENTS, "Contents-all": CONTENTS_ALL, "Sources": SOURCES}
    for name, text in files.items():
        (cache / name).write_text(text)
    known = Knowledge(cache, architecture="amd64")
    known.index(R).parent.mkdir()
    write_index(
        known.index(R),
        [cache / "Contents-amd64", cache / "Contents-all"],
        [cache / "Sources"],
        pydist=read_pydist(PYDIST),
    )
    return known


def packages(known: Knowledge, kind: PathKind, name: str) -> list[str]:
    return [owner.package for owner in known.owner(kind, name, release=R)]


def test_a_header_is_found_whatever_the_architecture_s_folder(known: Knowledge) -> None:
    assert packages(known, PathKind.HEADER, "lber.h") == ["libldap-dev"]
    assert "libcurl4-openssl-dev" in packages(known, PathKind.HEADER, "curl/curl.h")


def test_a_header_tells_the_folder_that_it_is_found_from(known: Knowledge) -> None:
    (owner,) = known.owner(PathKind.HEADER, "libpq-fe.h", release=R)
    assert (owner.package, owner.folder) == ("libpq-dev", "usr/include/postgresql")


def test_folders_of_a_header_s_name_must_fit(known: Knowledge) -> None:
    assert packages(known, PathKind.HEADER, "openssl/ssl.h") == ["libssl-dev", "libboring-dev"]
    assert packages(known, PathKind.HEADER, "tls/ssl.h") == []


def test_main_comes_before_other_components(known: Knowledge) -> None:
    assert packages(known, PathKind.HEADER, "ssl.h")[-1] == "libother-dev"


def test_of_one_source_s_packages_the_one_that_others_build_with_comes_first(known: Knowledge) -> None:
    assert packages(known, PathKind.HEADER, "curl/curl.h") == ["libcurl4-openssl-dev", "libcurl4-gnutls-dev"]


def test_a_path_with_spaces_is_read(known: Knowledge) -> None:
    assert packages(known, PathKind.HEADER, "a file with spaces.h") == ["libodd-dev"]


@pytest.mark.parametrize(
    ("kind", "name", "owners"),
    [
        (PathKind.PKG_CONFIG, "libpq", ["libpq-dev"]),
        (PathKind.SHARED_LIBRARY, "libpq.so.5", ["libpq5", "bundle"]),
        (PathKind.SHARED_LIBRARY, "pq", ["libpq5", "bundle"]),
        (PathKind.SHARED_LIBRARY, "enchant", ["libenchant-2-2"]),
        (PathKind.SHARED_LIBRARY, "libpq.so.4", []),
        (PathKind.LINK_LIBRARY, "pq", ["libpq-dev"]),
        (PathKind.PROGRAM, "pg_config", ["libpq-dev", "postgresql-common"]),
        (PathKind.PROGRAM, "/usr/bin/pg_config", ["libpq-dev", "postgresql-common"]),
        (PathKind.PROGRAM, "aclocal", ["automake"]),
        (PathKind.CMAKE, "gtest", ["libgtest-dev"]),
        (PathKind.PERL_MODULE, "XML::Parser", ["libxml-parser-perl"]),
        (PathKind.PYTHON_MODULE, "google.protobuf", ["python3-protobuf"]),
        (PathKind.DISTRIBUTION, "PyYAML", ["python3-yaml"]),
        (PathKind.PROGRAM, "nothing-such", []),
    ],
)
def test_every_kind_is_asked_for_by_its_own_name(
    known: Knowledge, kind: PathKind, name: str, owners: list[str]
) -> None:
    assert packages(known, kind, name) == owners


def test_packages_of_the_installer_are_no_owners(known: Knowledge) -> None:
    assert packages(known, PathKind.PROGRAM, "gcc") == []


def test_build_needs_are_those_of_the_source_package(known: Knowledge) -> None:
    needs = known.build_needs(Ecosystem.PYTHON, "Psycopg2", release=R)
    assert needs is not None
    assert (needs.source, needs.version, needs.homepage) == ("psycopg2", "2.9.5-1", "https://www.psycopg.org/")
    assert needs.packages == ("debhelper-compat", "libpq-dev", "python3-all-dev", "pkg-config")
    assert (needs.libraries, needs.tools) == (("libpq-dev",), ("pkg-config",))


@pytest.mark.parametrize(
    ("ecosystem", "project", "libraries"),
    [
        (Ecosystem.RUST, "openssl-sys", ("libssl-dev",)),
        (Ecosystem.GO, "github.com/mattn/go-sqlite3", ("libcurl4-openssl-dev",)),
    ],
)
def test_projects_of_other_ecosystems_have_needs_as_well(
    known: Knowledge, ecosystem: Ecosystem, project: str, libraries: tuple[str, ...]
) -> None:
    needs = known.build_needs(ecosystem, project, release=R)
    assert needs is not None
    assert needs.libraries == libraries


def test_an_unknown_project_has_no_needs(known: Knowledge) -> None:
    assert known.build_needs(Ecosystem.NODE, "canvas", release=R) is None


@pytest.mark.parametrize("name", ["OpenSSL", "ssl", "libssl"])
def test_a_library_known_by_name_alone_is_found(known: Knowledge, name: str) -> None:
    assert known.development(name, release=R) == ("libssl-dev",)


def test_of_a_library_with_several_makers_debian_s_choice_is_found(known: Knowledge) -> None:
    assert known.development("MySQL", release=R) == ("default-libmysqlclient-dev",)


@pytest.mark.parametrize(
    ("imported", "distributions"),
    [
        ("yaml", ("pyyaml",)),
        ("google.protobuf", ("protobuf",)),
        ("zope.interface", ("zope-interface",)),
        ("psycopg2.extras", ("psycopg2",)),
        ("pkg_resources", ("setuptools",)),
        ("nothing", ()),
    ],
)
def test_an_import_tells_its_distribution(known: Knowledge, imported: str, distributions: tuple[str, ...]) -> None:
    assert known.distributions(imported, release=R) == distributions


def test_a_distribution_tells_its_imports_public_ones_first(known: Knowledge) -> None:
    assert known.imports("pyyaml", release=R) == ("yaml", "_yaml")


def test_pydist_names_packages_without_metadata(known: Knowledge) -> None:
    assert known.python_package("opencv-python", release=R) == ("python3-opencv",)
    assert known.python_package("PyYAML", release=R) == ("python3-yaml",)


async def test_worker_threads_give_the_same_answers(known: Knowledge) -> None:
    assert await known.aowner(PathKind.HEADER, "lber.h", release=R) == known.owner(PathKind.HEADER, "lber.h", release=R)
    assert await known.adistributions("yaml", release=R) == ("pyyaml",)
    assert await known.aimports("protobuf", release=R) == ("google.protobuf",)
    assert await known.adevelopment("pq", release=R) == known.development("pq", release=R)
    assert await known.abuild_needs(Ecosystem.RUST, "libc", release=R) is None


def test_a_release_without_an_index_has_no_answers(tmp_path: Path) -> None:
    known = Knowledge(tmp_path, architecture="amd64")
    assert not known.has(R)
    assert known.owner(PathKind.HEADER, "lber.h", release=R) == ()
    assert known.build_needs(Ecosystem.PYTHON, "lxml", release=R) is None
    assert known.development("ssl", release=R) == ()
    assert known.distributions("yaml", release=R) == ()


def test_a_damaged_index_is_told(tmp_path: Path) -> None:
    known = Knowledge(tmp_path, architecture="amd64")
    known.index(R).parent.mkdir()
    known.index(R).write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="cannot be read"):
        known.owner(PathKind.HEADER, "lber.h", release=R)


def test_development_files_of_a_project_are_found_where_its_sources_are_numbered(known: Knowledge) -> None:
    assert known.development("PostgreSQL", release=R)[0] == "libpq-dev"


def test_packages_are_known_with_their_source_and_section(known: Knowledge) -> None:
    found = known.packages(["libpq-dev", "libpq5", "unheard-of"], release=R)
    assert {name: (one.section, one.source) for name, one in found.items()} == {
        "libpq-dev": ("libdevel", "postgresql-15"),
        "libpq5": ("libs", "postgresql-15"),
    }
    assert known.packages(["libpq-dev"], release="sid") == {}
    assert known.packages([], release=R) == {}


def test_the_upstream_version_of_a_source_is_read_from_debian_s(known: Knowledge) -> None:
    assert known.version("openssl", release=R) == "3.0.9"
    assert known.version("unheard-of", release=R) == ""
    assert known.version("openssl", release="sid") == ""
