"""Which distributions the imports of test files ask for that no requirement names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from specbuild.repo.facts import Facts

DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cairo": "pycairo",
    "Crypto": "pycryptodome",
    "Cryptodome": "pycryptodomex",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "gi": "pygobject",
    "git": "gitpython",
    "google.cloud.exceptions": "google-cloud-core",
    "google.protobuf": "protobuf",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "ldap": "python-ldap",
    "magic": "python-magic",
    "memcache": "python-memcached",
    "multipart": "python-multipart",
    "MySQLdb": "mysqlclient",
    "nacl": "pynacl",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "pkg_resources": "setuptools<82",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "rest_framework": "djangorestframework",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "usb": "pyusb",
    "wx": "wxpython",
    "xdist": "pytest-xdist",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Modules whose distribution has another name, or that only an older release has. All others are asked for by their
own names."""

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Imported:
    """A module that test files import, and what is installed to have it."""

    module: str
    requirement: str


def distribution_of(module: str) -> str:
    """The requirement by which a module is had."""
    top = module.split(".")[0]
    known = DISTRIBUTIONS.get(module) or DISTRIBUTIONS.get(top)
    return known or str(canonicalize_name(module))


def undeclared(facts: Facts, declared: Iterable[str]) -> tuple[Imported, ...]:
    """The modules for which none of the distributions named in `declared` stands, in the order of the facts.

    Some of them will come with what is declared; which, only the finished environment can tell.
    """
    names = set(declared)
    wanted = (Imported(need.name, distribution_of(need.name)) for need in facts.test_needs if need.kind == "import")
    return tuple(one for one in wanted if not {canonicalize_name(one.module), _name(one.requirement)} & names)


def some(modules: Sequence[Imported]) -> str:
    """Their names in words, the first few of many."""
    names = [one.module for one in modules[:_NAMED]]
    return ", ".join(names) + (", …" if len(modules) > _NAMED else "")


def _name(requirement: str) -> str:
    return requirement.partition("<")[0]
