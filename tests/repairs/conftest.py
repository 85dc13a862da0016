"""A small archive of which repairs find packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.knowledge.index_file import write_index
from specbuild.knowledge.query import Knowledge

CONTENTS = """\
usr/bin/autoreconf devel/autoconf
usr/bin/convert graphics/imagemagick
usr/bin/curl-config libdevel/libcurl4-gnutls-dev,libdevel/libcurl4-openssl-dev
usr/bin/jest javascript/jest
usr/bin/make devel/make
usr/bin/pg_config libdevel/libpq-dev
usr/bin/psycopg2-tool python/python3-psycopg2
usr/bin/swig interpreters/swig
usr/include/c++/12/vector libdevel/libstdc++-12-dev
usr/include/fuse3/fuse.h libdevel/libfuse3-dev
usr/include/lber.h libdevel/libldap-dev
usr/include/libavcodec/jni.h libdevel/libavcodec-dev
usr/include/linux/input.h libdevel/linux-libc-dev
usr/include/postgresql/libpq-fe.h libdevel/libpq-dev
usr/include/python3.11/Python.h libdevel/libpython3.11-dev
usr/include/ssl.h libdevel/libssl-dev
usr/include/stdio.h libdevel/libc6-dev
usr/include/xml.h libdevel/libxml2-dev
usr/lib/jvm/java-17-openjdk-amd64/include/jni.h java/openjdk-17-jdk-headless
usr/lib/llvm-14/lib/libclang-14.so.1 libs/libclang1-14
usr/lib/php/20220829/dom.so php/php8.2-xml
usr/lib/python3.11/ensurepip/__init__.py python/python3.11-venv
usr/lib/python3.11/tkinter/__init__.py python/python3-tk
usr/lib/x86_64-linux-gnu/cmake/GTest/GTestConfig.cmake libdevel/libgtest-dev
usr/lib/x86_64-linux-gnu/girepository-1.0/Gtk-3.0.typelib introspection/gir1.2-gtk-3.0
usr/lib/x86_64-linux-gnu/girepository-1.0/Gtk-4.0.typelib introspection/gir1.2-gtk-4.0
usr/lib/x86_64-linux-gnu/libGL.so.1 libs/libgl1
usr/lib/x86_64-linux-gnu/libclang-14.so libdevel/libclang-14-dev
usr/lib/x86_64-linux-gnu/libgobject-2.0.so.0 libs/libglib2.0-0
usr/lib/x86_64-linux-gnu/libpq.so libdevel/libpq-dev
usr/lib/x86_64-linux-gnu/libpq.so.5 libs/libpq5
usr/lib/x86_64-linux-gnu/pkgconfig/libxml-2.0.pc libdevel/libxml2-dev
usr/share/aclocal/ax_boost_base.m4 devel/autoconf-archive
usr/share/aclocal/gtk-doc.m4 devel/gtk-doc-tools
usr/share/zoneinfo/Europe/Berlin localization/tzdata
"""

CONTENTS_ALL = """\
usr/lib/python3/dist-packages/apt_pkg.cpython-311-x86_64-linux-gnu.so python/python3-apt
usr/lib/python3/dist-packages/psycopg2-2.9.egg-info/PKG-INFO python/python3-psycopg2
usr/lib/python3/dist-packages/psycopg2/__init__.py python/python3-psycopg2
usr/share/perl5/XML/Parser.pm perl/libxml-parser-perl
"""

DEV = " deb libdevel optional arch=any\n"
LIB = " deb libs optional arch=any\n"
SOURCES = f"""\
Package: postgresql-15
Version: 15.3-1
Package-List:
 libpq-dev{DEV} libpq5{LIB}
Package: openldap
Version: 2.5-1
Package-List:
 libldap-dev{DEV} libldap2-dev{DEV}
Package: cyrus-sasl2
Version: 2.1-1
Package-List:
 libsasl2-dev{DEV}
Package: python-ldap
Version: 3.4-1
Build-Depends: debhelper (>= 9), dpkg-dev, libldap2-dev, libsasl2-dev, libpython3-all-dev
Package-List:
 python3-ldap deb python optional arch=any

Package: psycopg2
Version: 2.9-1
Build-Depends: libpq-dev
Package-List:
 python3-psycopg2 deb python optional arch=any

Package: m2crypto
Version: 0.38-1
Build-Depends: libssl-dev, swig
Package-List:
 python3-m2crypto deb python optional arch=any

Package: curl
Version: 7.88-1
Package-List:
 libcurl4-gnutls-dev{DEV} libcurl4-openssl-dev{DEV}
Package: pycurl
Version: 7.45-1
Build-Depends: libcurl4-gnutls-dev, libgnutls28-dev
Package-List:
 python3-pycurl deb python optional arch=any

Package: gnutls28
Version: 3.7-1
Package-List:
 libgnutls28-dev{DEV}
Package: weasyprint
Version: 57-1
Build-Depends: libglib2.0-0, libpango-1.0-0
Package-List:
 weasyprint deb python optional arch=all

Package: glib2.0
Version: 2.74-1
Package-List:
 libglib2.0-0{LIB}
Package: pango1.0
Version: 1.50-1
Package-List:
 libpango-1.0-0{LIB}
Package: openssl
Version: 3.0-1
Package-List:
 libssl-dev{DEV}
Package: swig
Version: 4.1-1
Package-List:
 swig deb interpreters optional arch=any

Package: llvm-defaults
Version: 0.55
Package-List:
 libclang-dev{DEV}
Package: python3-defaults
Version: 3.11.2-1
Package-List:
 python3-venv deb python optional arch=any

Package: php-defaults
Version: 93
Package-List:
 php-xml deb php optional arch=all

Package: java-common
Version: 0.74
Package-List:
 default-jdk-headless deb java optional arch=any

Package: rustc
Version: 1.63.0+dfsg1-2
Package-List:
 cargo deb rust optional arch=any
 rustc deb rust optional arch=any

Package: rustc-web
Version: 1.85.0+dfsg3-1~deb12u3
Package-List:
 cargo-web deb devel optional arch=any
 rustc-web deb devel optional arch=any

Package: fuse
Version: 2.9-1
Package-List:
 libfuse-dev{DEV}
Package: player
Version: 1
Build-Depends: libcurl4-openssl-dev, libavcodec-dev
Package-List:
 player deb video optional arch=any

Package: fetcher
Version: 1
Build-Depends: libcurl4-openssl-dev
Package-List:
 fetcher deb net optional arch=any
"""

NEWER_SOURCES = """\
Package: golang-defaults
Version: 2:1.24~2
Package-List:
 golang-go deb golang optional arch=any

Package: ruby-defaults
Version: 1:3.3
Package-List:
 ruby deb ruby optional arch=any
"""


@pytest.fixture(name="debian", scope="session")
def make_indexes(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    """A bookworm of a few packages, and a trixie of which little is known."""
    cache = tmp_path_factory.mktemp("cache")
    known = Knowledge(cache, architecture="amd64")
    known.index("bookworm").parent.mkdir()
    files = {"amd64": CONTENTS, "all": CONTENTS_ALL, "sources": SOURCES, "none": "", "newer": NEWER_SOURCES}
    paths = {name: Path(cache, name) for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    write_index(known.index("bookworm"), [paths["amd64"], paths["all"]], [paths["sources"]])
    write_index(known.index("trixie"), [paths["none"]], [paths["newer"]])
    return known
