"""Which imports lead out of a source tree: neither the standard library's, nor the project's, nor lying in the tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from posixpath import basename, dirname

from specbuild.repo.readers.tree import Tree

REMOVED = frozenset(
    {
        "__builtin__", "aifc", "anydbm", "asynchat", "asyncore", "audioop", "binhex", "BaseHTTPServer",
        "CGIHTTPServer", "cPickle", "cStringIO", "cgi", "cgitb", "chunk", "commands", "compiler",
        "ConfigParser", "Cookie", "cookielib", "copy_reg", "crypt", "dbhash", "distutils", "DocXMLRPCServer",
        "dumbdbm", "dummy_thread", "dummy_threading", "exceptions", "formatter", "future_builtins", "gdbm",
        "hotshot", "htmlentitydefs", "HTMLParser", "httplib", "imageop", "imghdr", "imp", "imputil",
        "lib2to3", "macpath", "macurl2path", "mailcap", "md5", "mhlib", "mimetools", "MimeWriter", "mimify",
        "msilib", "multifile", "mutex", "new", "nis", "nntplib", "ossaudiodev", "parser", "pipes", "popen2",
        "posixfile", "Queue", "repr", "rexec", "rfc822", "robotparser", "ScrolledText", "sets", "sgmllib",
        "sha", "SimpleHTTPServer", "SimpleXMLRPCServer", "smtpd", "sndhdr", "SocketServer", "spwd", "statvfs",
        "StringIO", "stringold", "sunau", "sunaudio", "symbol", "telnetlib", "test", "this", "thread",
        "Tkinter", "tkMessageBox", "toaiff", "urllib2", "urlparse", "user", "UserDict", "UserList",
        "UserString", "uu", "whichdb", "whrandom", "xdrlib", "xmlrpclib", "_winreg",
    }
)  # fmt: skip
"""Modules of the standard library of older Pythons, down to 2.6 (PEP 4, PEP 594, PEP 632, PEP 3108)."""

NAMESPACES = frozenset(
    {
        "azure",
        "backports",
        "flaskext",
        "google",
        "jaraco",
        "paste",
        "plone",
        "repoze",
        "ruamel",
        "sphinxcontrib",
        "zope",
    }
)
"""Top-level names that many distributions share, so that it takes a second name to tell which one is meant."""

_NO_CODE = frozenset(
    {
        "docs", "doc", "examples", "example", "templates", "cookiecutter", "bench", "benchmarks", "data", "testdata",
        "test_data", "fixtures", "samples", "vendor", "_vendor",
    }
)  # fmt: skip
"""Folders whose content is shown, copied or taken apart, but seldom on the import path."""
_SUFFIXES = (".py", ".pyx", ".pxd", ".so", ".pyd")


def standard(module: str) -> bool:
    """Whether the standard library has or had a top-level module of that name."""
    return module in sys.stdlib_module_names or module in REMOVED


def local_modules(tree: Tree) -> frozenset[str]:
    """Names under which something of the tree can be imported at the top level.

    A module or folder counts where its own folder is no package: there it can be reached by a path entry, as pytest
    adds one for each test folder. Inside a package it is reached by the package's name only.
    """
    packages = {dirname(path) for path in tree.files if basename(path) in ("__init__.py", "__init__.pyx")}
    found: set[str] = set()
    for path in tree.files:
        if path.endswith(_SUFFIXES):
            found |= set(_importable(path, packages))
    return frozenset(found)


def _importable(path: str, packages: set[str]) -> Iterator[str]:
    parts = path.split("/")
    for depth, part in enumerate(parts):
        above = "/".join(parts[:depth])
        if above not in packages and not _NO_CODE.intersection(parts[:depth]):
            yield part.partition(".")[0]


def top_imports(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Absolute names that are imported at the top of a file outside of any condition, and their lines.

    What follows `pytest.importorskip` is left out, since the file is skipped when that fails.
    """
    for node in module.body:
        if _skips(node):
            return
        if isinstance(node, ast.Try):
            yield from _in_every_case(node)
        else:
            yield from _names([node])


def _in_every_case(node: ast.Try) -> Iterator[tuple[str, int]]:
    """What a `try` imports and each of its handlers too, as where a name has moved within a distribution."""
    handlers = [{name.split(".")[0] for name, _ in _names(handler.body)} for handler in node.handlers]
    for name, line in _names(node.body):
        if handlers and all(name.split(".")[0] in one for one in handlers):
            yield name, line


def _names(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _from(node.module, node)


def _from(module: str, node: ast.ImportFrom) -> Iterator[tuple[str, int]]:
    """`from google.cloud import storage` means google.cloud.storage; elsewhere the module alone tells enough."""
    for alias in node.names if module.split(".")[0] in NAMESPACES else node.names[:1]:
        yield f"{module}.{alias.name}" if module.split(".")[0] in NAMESPACES else module, node.lineno


def _skips(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    match value:
        case ast.Call(func=ast.Attribute(attr="importorskip") | ast.Name(id="importorskip")):
            return True
        case _:
            return False


def distribution_part(name: str) -> str:
    """As much of an imported name as tells the distribution: its top, within a namespace two or three parts."""
    parts = name.split(".")
    if parts[0] not in NAMESPACES:
        return parts[0]
    length = 3 if parts[:2] == ["google", "cloud"] else 2
    return ".".join(parts[:length])
