"""Dependency fields of source packages."""

from __future__ import annotations

import pytest

from specbuild.knowledge.kinds import Ecosystem
from specbuild.knowledge.projects import source_names
from specbuild.knowledge.sources import dependency_names


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("", ()),
        ("libpq-dev (>= 9), zlib1g-dev", ("libpq-dev", "zlib1g-dev")),
        ("libjpeg-dev | libjpeg62-dev", ("libjpeg-dev",)),
        ("cargo:native (>= 0.6) <!nocheck>", ("cargo",)),
        ("libbsd-dev [kfreebsd-any] | libc6-dev", ("libc6-dev",)),
        ("libfoo-dev [!linux-any]", ()),
        ("libfoo-dev [!s390x]", ("libfoo-dev",)),
        ("libfoo-dev [amd64 hurd-any]", ("libfoo-dev",)),
        ("python3-doc <!nodoc>, a2ps,\n a2ps", ("a2ps",)),
        ("librust-libc-0.2+default-dev (>= 0.2-~~)", ("librust-libc-0.2+default-dev",)),
        (",, ${misc:Depends}", ()),
    ],
)
def test_names_are_those_that_are_installed_on_linux(field: str, names: tuple[str, ...]) -> None:
    assert dependency_names(field) == names


@pytest.mark.parametrize(
    ("ecosystem", "project", "source"),
    [
        (Ecosystem.PYTHON, "Zope.Interface", "python-zope-interface"),
        (Ecosystem.RUST, "openssl_sys", "rust-openssl-sys"),
        (Ecosystem.NODE, "@babel/core", "node-babel-core"),
        (Ecosystem.GO, "github.com/pkg/errors", "golang-github-pkg-errors"),
        (Ecosystem.PERL, "DBD::Pg", "libdbd-pg-perl"),
        (Ecosystem.R, "Rcpp", "r-cran-rcpp"),
        (Ecosystem.RUBY, "nokogiri", "ruby-nokogiri"),
        (Ecosystem.PHP, "symfony/polyfill", "php-symfony-polyfill"),
        (Ecosystem.HASKELL, "aeson", "haskell-aeson"),
        (Ecosystem.NATIVE, "libgit2", "libgit2"),
    ],
)
def test_projects_are_named_as_debian_s_teams_name_them(ecosystem: Ecosystem, project: str, source: str) -> None:
    assert source_names(ecosystem, project)[0] == source
