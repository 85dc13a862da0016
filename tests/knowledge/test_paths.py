"""Which paths are kept, and as what."""

from __future__ import annotations

import pytest

from specbuild.knowledge.kinds import PathKind
from specbuild.knowledge.paths import CANDIDATE, Kept, classify

DIST = "usr/lib/python3/dist-packages"

CASES: list[tuple[str, list[Kept]]] = [
    ("usr/include/lber.h", [Kept(PathKind.HEADER, "lber.h", "usr/include")]),
    ("usr/include/x86_64-linux-gnu/openssl/conf.h", [Kept(PathKind.HEADER, "conf.h", "usr/include/openssl")]),
    ("usr/include/eigen3/Eigen/Dense", [Kept(PathKind.HEADER, "Dense", "usr/include/eigen3/Eigen")]),
    ("usr/include/pkg/readme.txt", []),
    (
        "usr/lib/aarch64-linux-gnu/glib-2.0/include/glibconfig.h",
        [Kept(PathKind.HEADER, "glibconfig.h", "usr/lib/glib-2.0/include")],
    ),
    ("usr/lib/x86_64-linux-gnu/pkgconfig/libpq.pc", [Kept(PathKind.PKG_CONFIG, "libpq", "usr/lib/pkgconfig")]),
    ("usr/share/pkgconfig/xproto.pc", [Kept(PathKind.PKG_CONFIG, "xproto", "usr/share/pkgconfig")]),
    ("usr/lib/x86_64-linux-gnu/libpq.so.5", [Kept(PathKind.SHARED_LIBRARY, "libpq.so.5", "usr/lib")]),
    (
        "usr/lib/x86_64-linux-gnu/libpq.so",
        [Kept(PathKind.SHARED_LIBRARY, "libpq.so", "usr/lib"), Kept(PathKind.LINK_LIBRARY, "pq", "usr/lib")],
    ),
    ("usr/lib/arm-linux-gnueabihf/libfl.a", [Kept(PathKind.LINK_LIBRARY, "fl", "usr/lib")]),
    ("lib/x86_64-linux-gnu/libc.so.6", [Kept(PathKind.SHARED_LIBRARY, "libc.so.6", "lib")]),
    ("usr/share/perl5/XML/Parser.pm", [Kept(PathKind.PERL_MODULE, "XML/Parser", "usr/share/perl5")]),
    ("usr/lib/x86_64-linux-gnu/perl/5.36.0/POSIX.pm", [Kept(PathKind.PERL_MODULE, "POSIX", "usr/lib/perl/5.36.0")]),
    (
        "usr/share/ruby/vendor_ruby/rspec/core.rb",
        [Kept(PathKind.RUBY_LIBRARY, "rspec/core", "usr/share/ruby/vendor_ruby")],
    ),
    (
        "usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/gems/nokogiri-1.13.10/lib/nokogiri.rb",
        [Kept(PathKind.RUBY_LIBRARY, "nokogiri", "usr/lib/rubygems-integration/3.1.0/gems/nokogiri-1.13.10/lib")],
    ),
    ("usr/lib/php/20220829/mbstring.so", [Kept(PathKind.PHP_EXTENSION, "mbstring", "usr/lib/php/20220829")]),
    ("usr/share/zoneinfo/US/Pacific", [Kept(PathKind.TIME_ZONE, "US/Pacific", "usr/share/zoneinfo")]),
    ("usr/share/zoneinfo/posixrules", []),
    ("usr/bin/pg_config", [Kept(PathKind.PROGRAM, "pg_config", "usr/bin")]),
    ("sbin/ldconfig", [Kept(PathKind.PROGRAM, "ldconfig", "sbin")]),
    ("usr/lib/postgresql/15/bin/initdb", [Kept(PathKind.PROGRAM, "initdb", "usr/lib/postgresql/15/bin")]),
    ("usr/lib/cmake/GTest/GTestConfig.cmake", [Kept(PathKind.CMAKE, "gtest", "usr/lib/cmake/GTest")]),
    ("usr/lib/cmake/fmt/fmt-config.cmake", [Kept(PathKind.CMAKE, "fmt", "usr/lib/cmake/fmt")]),
    ("usr/share/ECM/cmake/FindEGL.cmake", [Kept(PathKind.CMAKE_MODULE, "egl", "usr/share/ECM/cmake")]),
    ("usr/share/aclocal/libtool.m4", [Kept(PathKind.ACLOCAL, "libtool", "usr/share/aclocal")]),
    (
        "usr/lib/x86_64-linux-gnu/girepository-1.0/Gtk-3.0.typelib",
        [Kept(PathKind.TYPELIB, "Gtk-3.0", "usr/lib/girepository-1.0")],
    ),
    (f"{DIST}/yaml/__init__.py", [Kept(PathKind.PYTHON_MODULE, "yaml", DIST)]),
    (f"{DIST}/six.py", [Kept(PathKind.PYTHON_MODULE, "six", DIST)]),
    (f"{DIST}/_cffi.cpython-311-x86_64-linux-gnu.so", [Kept(PathKind.PYTHON_MODULE, "_cffi", DIST)]),
    (f"{DIST}/google/protobuf/__init__.py", [Kept(PathKind.PYTHON_MODULE, "google.protobuf", DIST)]),
    (f"{DIST}/a/b/c/__init__.py", []),
    (f"{DIST}/yaml/py.typed", []),
    ("usr/lib/python3.11/ensurepip/__init__.py", [Kept(PathKind.PYTHON_MODULE, "ensurepip", "usr/lib/python3.11")]),
    (
        "usr/lib/python3.11/lib-dynload/_tkinter.cpython-311-x86_64-linux-gnu.so",
        [Kept(PathKind.PYTHON_MODULE, "_tkinter", "usr/lib/python3.11/lib-dynload")],
    ),
    (f"{DIST}/PyYAML-6.0.egg-info/PKG-INFO", [Kept(PathKind.DISTRIBUTION, "pyyaml", DIST)]),
    (f"{DIST}/zope.interface-5.5.dist-info/METADATA", [Kept(PathKind.DISTRIBUTION, "zope-interface", DIST)]),
    (f"{DIST}/PyYAML-6.0.egg-info/top_level.txt", []),
    (f"{DIST}/pyusb-1.2.1.egg-info", [Kept(PathKind.DISTRIBUTION, "pyusb", DIST)]),
    (f"{DIST}/mesonbuild/modules/gnome.py", [Kept(PathKind.MESON, "gnome", f"{DIST}/mesonbuild/modules")]),
]


@pytest.mark.parametrize(("path", "kept"), CASES)
def test_paths_are_kept_as_what_they_are_asked_for(path: str, kept: list[Kept]) -> None:
    assert list(classify(path)) == kept


@pytest.mark.parametrize("path", [path for path, kept in CASES if kept])
def test_the_quick_look_lets_everything_pass_that_is_kept(path: str) -> None:
    assert CANDIDATE.fullmatch(f"{path}    libs/x".encode())


@pytest.mark.parametrize(
    "path", ["usr/share/doc/x/README", "etc/passwd", "usr/share/man/man1/gcc.1.gz", "boot/vmlinuz"]
)
def test_the_quick_look_passes_over_the_bulk(path: str) -> None:
    assert not CANDIDATE.fullmatch(f"{path}    libs/x".encode())
