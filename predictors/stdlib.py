"""What releases of Python removed, so that source which uses it needs an older one. From its What's New pages."""

from __future__ import annotations

import sys

MODULES: dict[str, str] = {
    **dict.fromkeys(("macpath",), "3.8"),
    **dict.fromkeys(("dummy_threading", "_dummy_threading"), "3.9"),
    **dict.fromkeys(("formatter", "parser", "symbol", "_bootlocale"), "3.10"),
    **dict.fromkeys(("binhex",), "3.11"),
    **dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), "3.12"),
    # No release of numpy has it on Python 3.12, since it builds upon distutils.
    "numpy.distutils": "3.12",
    **dict.fromkeys(
        [
            "aifc",
            "audioop",
            "cgi",
            "cgitb",
            "chunk",
            "crypt",
            "imghdr",
            "lib2to3",
            "mailcap",
            "msilib",
            "nis",
            "nntplib",
            "ossaudiodev",
            "pipes",
            "sndhdr",
            "spwd",
            "sunau",
            "telnetlib",
            "uu",
            "xdrlib",
        ],
        "3.13",
    ),
    **dict.fromkeys(
        [
            "ConfigParser",
            "Cookie",
            "HTMLParser",
            "Queue",
            "SocketServer",
            "StringIO",
            "UserDict",
            "__builtin__",
            "cPickle",
            "cStringIO",
            "commands",
            "cookielib",
            "httplib",
            "thread",
            "urllib2",
            "urlparse",
        ],
        "3",
    ),
}
"""The first release without the module."""

_ABSTRACT = [
    "Awaitable",
    "Callable",
    "Container",
    "Coroutine",
    "Generator",
    "Hashable",
    "ItemsView",
    "Iterable",
    "Iterator",
    "KeysView",
    "Mapping",
    "MappingView",
    "MutableMapping",
    "MutableSequence",
    "MutableSet",
    "Sequence",
    "Set",
    "Sized",
    "ValuesView",
]

NAMES: dict[tuple[str, str], str] = {
    **{("collections", name): "3.10" for name in _ABSTRACT},
    ("fractions", "gcd"): "3.9",
    ("inspect", "getargspec"): "3.11",
    ("inspect", "formatargspec"): "3.11",
    ("asyncio", "coroutine"): "3.11",
    ("asyncio", "async"): "3.7",
    ("asyncio", "get_event_loop_policy"): "3.16",
    ("time", "clock"): "3.8",
    ("platform", "linux_distribution"): "3.8",
    ("platform", "dist"): "3.8",
    ("cgi", "escape"): "3.8",
    ("cgi", "parse_qs"): "3.8",
    ("html.parser", "HTMLParseError"): "3.5",
    ("HTMLParser", "unescape"): "3.9",
    ("base64", "encodestring"): "3.9",
    ("base64", "decodestring"): "3.9",
    ("array", "tostring"): "3.9",
    ("gettext", "bindtextdomain_codeset"): "3.10",
    ("threading", "_shutdown_locks"): "3.13",
    ("pkgutil", "ImpImporter"): "3.12",
    ("pkgutil", "ImpLoader"): "3.12",
    ("configparser", "SafeConfigParser"): "3.12",
    ("ssl", "wrap_socket"): "3.12",
    ("ssl", "match_hostname"): "3.12",
    ("unittest", "makeSuite"): "3.13",
    ("unittest", "findTestCases"): "3.13",
    ("typing", "io"): "3.13",
    ("locale", "resetlocale"): "3.13",
    ("ast", "Num"): "3.14",
    ("ast", "Str"): "3.14",
    ("ast", "NameConstant"): "3.14",
    ("ast", "Bytes"): "3.14",
    ("ast", "Ellipsis"): "3.14",
    ("pkgutil", "find_loader"): "3.14",
    ("importlib.abc", "Traversable"): "3.14",
}
"""The first release without a name of a module."""

TEST_METHODS: dict[str, str] = dict.fromkeys(
    [
        "assertEquals",
        "assertNotEquals",
        "assertAlmostEquals",
        "assertNotAlmostEquals",
        "assertRegexpMatches",
        "assertNotRegexpMatches",
        "assertRaisesRegexp",
        "assertItemsEqual",
        "failUnless",
        "failUnlessEqual",
        "failIf",
        "failIfEqual",
        "failUnlessRaises",
        "assert_",
        "assertDictContainsSubset",
    ],
    "3.12",
)
"""Methods of test cases."""


def is_standard(module: str) -> bool:
    """Whether a module belongs, or once belonged, to the interpreter itself."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in MODULES
