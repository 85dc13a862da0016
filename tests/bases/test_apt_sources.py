"""Which mirrors are Debian's, in both formats of apt's sources."""

from __future__ import annotations

from pathlib import Path

from specbuild.bases.apt_sources import (
    Source,
    deb822_sources,
    debian_mirrors,
    host_sources,
    one_line_sources,
    public_uri,
    sources_file,
)
from specbuild.bases.releases import find_release

DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://off.test/debian
Suites: sid
Components: main
"""


def test_a_stanza_gives_one_source_for_each_suite_and_disabled_ones_give_none() -> None:
    found = list(deb822_sources(DEB822))
    assert [(source.uri, source.suite) for source in found] == [
        ("http://mirror.test/debian", "bookworm"),
        ("http://mirror.test/debian", "bookworm-updates"),
        ("http://mirror.test/debian-security", "bookworm-security"),
    ]
    assert [source.signed_by for source in found] == ["/usr/share/keyrings/some.gpg"] * 2 + [None]


def test_one_line_sources_may_have_options_and_comments() -> None:
    text = (
        "# deb http://no.test/debian sid main\n"
        "deb [arch=amd64 signed-by=/k.gpg] https://a.test/debian bullseye main contrib # why\n"
        "deb-src http://a.test/debian bullseye main\n"
    )
    assert list(one_line_sources(text)) == [
        Source("https://a.test/debian", "bullseye", ("main", "contrib"), "/k.gpg"),
    ]


def test_suites_are_mapped_to_the_wanted_release() -> None:
    mirrors = debian_mirrors(list(deb822_sources(DEB822)))
    assert mirrors is not None
    release = find_release("trixie")
    assert release is not None
    assert [(source.uri, source.suite) for source in mirrors.sources(release)] == [
        ("http://mirror.test/debian", "trixie"),
        ("http://mirror.test/debian", "trixie-updates"),
        ("http://mirror.test/debian-security", "trixie-security"),
    ]


def test_a_release_in_the_making_has_no_suites_of_its_own() -> None:
    mirrors = debian_mirrors(list(deb822_sources(DEB822)))
    release = find_release("sid")
    assert mirrors is not None
    assert release is not None
    assert [source.suite for source in mirrors.sources(release)] == ["sid"]


def test_archives_of_others_are_not_taken_for_debian() -> None:
    others = [
        Source("https://browser.test/linux/deb/", "stable", ("main",)),
        Source("https://vendor.test/debian/12/prod", "bookworm", ("main",)),
    ]
    own = [Source("http://mirror.test/debian", "bookworm", ("main",))]
    assert debian_mirrors(others[:1]) is None
    found = debian_mirrors([*others, *own])
    assert found is not None
    assert found.main == "http://mirror.test/debian"


def test_a_host_of_another_family_has_no_mirror_of_debian() -> None:
    assert debian_mirrors([Source("http://archive.test/ubuntu", "noble", ("main",))]) is None


def test_folders_and_media_are_no_mirrors_for_a_sandbox() -> None:
    assert debian_mirrors([Source("cdrom:[Debian]/", "bookworm", ("main",))]) is None
    assert debian_mirrors([Source("file:/srv/debian", "bookworm", ("main",))]) is None


def test_sources_are_read_in_apts_order(tmp_path: Path) -> None:
    folder = tmp_path / "etc/apt/sources.list.d"
    folder.mkdir(parents=True)
    (tmp_path / "etc/apt/sources.list").write_text("# nothing\n")
    (folder / "b.sources").write_text(DEB822)
    (folder / "a.list").write_text("deb http://first.test/debian bookworm main\n")
    (folder / "c.list.disabled").write_text("deb http://never.test/debian bookworm main\n")
    assert [source.uri for source in host_sources(tmp_path)][:2] == [
        "http://first.test/debian",
        "http://mirror.test/debian",
    ]


def test_a_base_names_the_mirror_without_its_credentials() -> None:
    release = find_release("bookworm")
    assert release is not None
    path, text = sources_file(release, [Source("http://user:secret@m.test/debian", "bookworm", ("main",))], "/k.gpg")
    assert path == "etc/apt/sources.list.d/debian.sources"
    assert "secret" not in text
    assert list(deb822_sources(text)) == [Source("http://m.test/debian", "bookworm", ("main",), "/k.gpg")]
    assert public_uri("http://m.test:8080/debian") == "http://m.test:8080/debian"


def test_an_old_release_has_its_sources_where_its_images_have_them() -> None:
    release = find_release("bullseye")
    assert release is not None
    path, text = sources_file(release, [Source("http://m.test/debian", "bullseye", ("main",))], "/k.gpg")
    assert path == "etc/apt/sources.list"
    assert text == "deb http://m.test/debian bullseye main\n"
