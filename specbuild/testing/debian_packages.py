"""The few packages of a small Debian archive: an example for `archive_routes`."""

from __future__ import annotations

CONTENTS = """\
usr/bin/aclocal-1.16 devel/automake
usr/bin/pg_config libdevel/libpq-dev,database/postgresql-common
usr/include/lber.h libdevel/libldap-dev
usr/include/x86_64-linux-gnu/curl/curl.h libdevel/libcurl4-gnutls-dev,libdevel/libcurl4-openssl-dev
usr/include/postgresql/libpq-fe.h libdevel/libpq-dev
usr/include/ssl.h contrib/libdevel/libother-dev
usr/include/openssl/ssl.h libdevel/libssl-dev
usr/include/android/openssl/ssl.h libdevel/libboring-dev
usr/include/a file with spaces.h libdevel/libodd-dev
usr/lib/x86_64-linux-gnu/libenchant-2.so.2 libs/libenchant-2-2
usr/lib/x86_64-linux-gnu/libpq.so libdevel/libpq-dev
usr/lib/x86_64-linux-gnu/libpq.so.5 libs/libpq5
usr/lib/x86_64-linux-gnu/private/libpq.so.5 libs/bundle
usr/lib/x86_64-linux-gnu/libssl.so libdevel/libssl-dev
usr/lib/x86_64-linux-gnu/pkgconfig/libpq.pc libdevel/libpq-dev
usr/lib/x86_64-linux-gnu/pkgconfig/openssl.pc libdevel/libssl-dev
usr/lib/x86_64-linux-gnu/cmake/GTest/GTestConfig.cmake libdevel/libgtest-dev
usr/lib/debian-installer/bin/gcc debian-installer/gcc-udeb
usr/share/perl5/XML/Parser.pm perl/libxml-parser-perl
usr/share/doc/libpq-dev/copyright libdevel/libpq-dev
"""

CONTENTS_ALL = """\
usr/lib/python3/dist-packages/PyYAML-6.0.egg-info/PKG-INFO python/python3-yaml
usr/lib/python3/dist-packages/_yaml/__init__.py python/python3-yaml
usr/lib/python3/dist-packages/yaml/__init__.py python/python3-yaml
usr/lib/python3/dist-packages/psycopg2-2.9.egg-info/PKG-INFO python/python3-psycopg2
usr/lib/python3/dist-packages/psycopg2/__init__.py python/python3-psycopg2
usr/lib/python3/dist-packages/psycopg2/extras.py python/python3-psycopg2
usr/lib/python3/dist-packages/zope/__init__.py python/python3-zope-other
usr/lib/python3/dist-packages/zope/interface/__init__.py python/python3-zope.interface
usr/lib/python3/dist-packages/zope.interface-5.5.egg-info/PKG-INFO python/python3-zope.interface
usr/lib/python3/dist-packages/google/protobuf/__init__.py python/python3-protobuf
usr/lib/python3/dist-packages/protobuf-3.21.egg-info/PKG-INFO python/python3-protobuf
usr/lib/python3/dist-packages/pkg_resources/__init__.py python/python3-pkg-resources
usr/lib/python3/dist-packages/setuptools-66.egg-info/PKG-INFO python/python3-setuptools
usr/lib/python3/dist-packages/setuptools/__init__.py python/python3-setuptools
"""

SOURCES = """\
Package: postgresql-15
Binary: libpq-dev, libpq5
Version: 15.3-1
Package-List:
 libpq-dev deb libdevel optional arch=any
 libpq5 deb libs optional arch=any
 libpq-udeb udeb debian-installer optional arch=any

Package: openssl
Version: 3.0.9-1
Package-List:
 libssl-dev deb libdevel optional arch=any

Package: curl
Version: 7.88-1
Package-List:
 libcurl4-gnutls-dev deb libdevel optional arch=any
 libcurl4-openssl-dev deb libdevel optional arch=any

Package: mysql-defaults
Version: 1
Package-List:
 default-libmysqlclient-dev deb database optional arch=any

Package: pkgconf
Version: 1
Package-List:
 pkg-config deb devel optional arch=any

Package: psycopg2
Version: 2.9.5-1
Build-Depends: debhelper-compat (= 13), libpq-dev (>= 9),
 python3-all-dev <!nocheck>, pkg-config | pkgconf, libbsd-dev [kfreebsd-any], python3-doc <!nodoc>
Homepage: https://www.psycopg.org/
Package-List:
 python3-psycopg2 deb python optional arch=any

Package: psycopg2
Version: 2.8.0-1
Build-Depends: libold-dev
Extra-Source-Only: yes

Package: setuptools
Version: 66
Package-List:
 python3-pkg-resources deb python optional arch=all
 python3-setuptools deb python optional arch=all

Package: golang-github-mattn-go-sqlite3
Version: 1
Go-Import-Path: github.com/mattn/go-sqlite3
Build-Depends: golang-any, libcurl4-openssl-dev
Package-List:
 golang-github-mattn-go-sqlite3-dev deb golang optional arch=all

Package: rust-openssl-sys
Version: 0.9.80-1
Build-Depends: cargo:native <!nocheck>, libssl-dev <!nocheck>
Package-List:
 librust-openssl-sys-dev deb rust optional arch=any
"""

PYDIST = "# distribution package\nopencv_python python3-opencv\nPyYAML python3-yaml\nlost\n"
