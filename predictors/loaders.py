"""Shared libraries at run time, and the binary interfaces of the base."""

from __future__ import annotations

from specbuild.failures import BinaryTooNew, Failure, MissingLibrary, NotBuilt, Weight
from specbuild.predictors.phrases import RAISED
from specbuild.predictors.signature import always, signature


def _library(library: str, evidence: str) -> Failure | None:
    """Bindings try the names of all systems in turn; those of others are never there."""
    if library.endswith((".dylib", ".dll")):
        return None
    return MissingLibrary(library=library, when="load", evidence=evidence)


_SYSTEM = ("/usr/", "/lib", "/opt/")


def _file(library: str, evidence: str) -> Failure:
    """A path that is no part of the system is a library of the project, which a step before would have made."""
    if library.startswith("/") and not library.startswith(_SYSTEM):
        return NotBuilt(path=library, evidence=evidence)
    return MissingLibrary(library=library.rsplit("/", 1)[-1], when="load", evidence=evidence)


def _short_library(library: str, evidence: str) -> Failure:
    return MissingLibrary(library=library.removeprefix("lib"), when="load", evidence=evidence)


_KINDS = frozenset({"the", "static", "shared", "dynamic", "native", "required", "system", "c", "standard", "this", "a"})


def _named_library(evidence: str, first: str = "", second: str = "", third: str = "") -> Failure | None:
    name = first or second or third
    if name.lower() in _KINDS or evidence.startswith(("configure", "WARNING")):
        return None
    return _library(name.lower() if name.isupper() else name, evidence)


def _jvm_library(evidence: str, first: str = "", second: str = "") -> Failure:
    return MissingLibrary(library=first or second, when="load", evidence=evidence)


SIGNATURES = (
    signature(
        "ould not open library '",
        r"(?:\S{0,200}:\d{1,6}:in )?(?:[`'][\w.#: ]{1,80}': )?(?:LoadError: )?Could not open library "
        r"'(?P<library>[^'\s]{1,120})'",
        _library,
        (
            (
                "LoadError: Could not open library 'vips': vips: cannot open shared object file: No such file or "
                "directory."
            ),
            MissingLibrary(library="vips", when="load"),
        ),
    ),
    signature(
        "annot open shared object file",
        r"(?:(?:\S{1,200}: )?error while loading shared libraries: |[^#`]{1,300} failed \(|Can't load "
        r"'[^']{1,200}' for module [\w:]{1,60}: |" + RAISED + r"(?:libffi\S{0,9}: )?)"
        r"(?P<library>[^\s:'\"()#`]{1,200}\.so[\d.]{0,20}): cannot open shared object file",
        _file,
        (
            "ImportError: libgomp.so.1: cannot open shared object file: No such file or directory",
            MissingLibrary(library="libgomp.so.1", when="load"),
        ),
        (
            "/opt/x/chrome: error while loading shared libraries: libnss3.so: cannot open shared object file: No such",
            MissingLibrary(library="libnss3.so", when="load"),
        ),
        near=("# libgomp.so.1: cannot open shared object file is solved by libgomp1",),
    ),
    signature(
        "annot load library '",
        RAISED + r"cannot load library '(?P<library>[^\s']{1,120})'",
        _library,
        (
            "OSError: cannot load library 'libcairo.so.2': libcairo.so.2: cannot open shared object file: No such file",
            MissingLibrary(library="libcairo.so.2", when="load"),
        ),
        near=("E   cannot load library 'libcairo.2.dylib': libcairo.2.dylib: cannot open shared object file",),
    ),
    signature(
        "no library called ",
        RAISED + r"no library called \"(?P<library>[^\s\"]{1,80})\" was found",
        always(MissingLibrary, when="load"),
        (
            'OSError: no library called "pango-1.0" was found',
            MissingLibrary(library="pango-1.0", when="load"),
        ),
    ),
    signature(
        ("ould not find library ", "ould not find lib "),
        RAISED + r"Could not find lib(?:rary)? (?P<library>[\w.+-]{1,80}) or load any of its variants",
        always(MissingLibrary, when="load"),
        (
            "OSError: Could not find library spatialindex_c or load any of its variants",
            MissingLibrary(library="spatialindex_c", when="load"),
        ),
    ),
    signature(
        ("failed to find ", "nable to find ", "ould not find "),
        RAISED + r"(?:failed to|[Uu]nable to|[Cc]ould not) find (?P<library>lib[a-z][\w.+-]{0,60}?)(?: library)?"
        r"(?:\.(?: |$)|: \"| shared library|$)",
        always(MissingLibrary, when="load"),
        (
            "ImportError: failed to find libmagic.  Check your installation",
            MissingLibrary(library="libmagic", when="load"),
        ),
        (
            "OSError: Unable to find libzbar shared library",
            MissingLibrary(library="libzbar", when="load"),
        ),
    ),
    signature(
        "C library was not found",
        RAISED + r"The '(?P<library>[\w.+-]{1,60})' C library was not found",
        always(MissingLibrary, when="load"),
        (
            "ImportError: The 'hunspell' C library was not found and maybe needs to be installed.",
            MissingLibrary(library="hunspell", when="load"),
        ),
    ),
    signature(
        "not found",
        RAISED + r"(?:[^\s:`'\"]{1,300}: )?(?:/[^\s:`'\"]{1,200}: )?"
        r"version [`'](?P<symbol>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,12})' not found",
        BinaryTooNew,
        (
            "/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ./x)",
            BinaryTooNew(symbol="GLIBCXX_3.4.32"),
        ),
    ),
    signature(
        "undefined symbol: ",
        RAISED + r"(?P<library>/\S{1,300}\.so[\w.-]{0,20}): undefined symbol: \S{1,200}",
        always(MissingLibrary, when="load", weight=Weight.SYMPTOM),
        (
            "ImportError: /v/_x.so: undefined symbol: _ZN2xyz",
            MissingLibrary(library="/v/_x.so", when="load", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        (
            "ould not find the ",
            "nable to find ",
            "not find ",
            "nable to locate ",
            "not found",
            "not installed",
            "nable to load ",
            "ould not load ",
            "ailed to load ",
            "not find lib",
        ),
        RAISED
        + r"(?:(?:[Cc]ould not|[Cc]annot|[Uu]nable to|[Ff]ailed to) (?:find|load|locate|open) (?:the )?(?:shared "
        r"|native |C )?"
        r"(?:(?P<first>[A-Za-z][\w+-]{1,40})(?: shared| native)? library\b|library:? "
        r"['\"`]?(?P<second>[A-Za-z][\w.+-]{1,60}?)['\"`]?(?:[ .:;,]|$))"
        r"|(?P<third>[a-z][\w+-]{1,40}) (?:shared |native |C )?library (?:was |is |could )?not (?:be )?(?:found"
        r"|installed|loaded))",
        _named_library,
        (
            'x.ImproperlyConfigured: Could not find the GDAL library (tried "gdal", "GDAL"). Is GDAL installed?',
            MissingLibrary(library="gdal", when="load"),
        ),
        ("OSError: sndfile library not found", MissingLibrary(library="sndfile", when="load")),
        ("RuntimeError: Unable to load library 'enchant-2'", MissingLibrary(library="enchant-2", when="load")),
        near=("RuntimeError: could not find the static library", "configure: WARNING: z library not found"),
    ),
    signature(
        "rror loading shared library ",
        r"(?:\S{1,200}: )?Error loading shared library (?P<library>[^\s:]{1,120}\.so[\d.]{0,20}): ",
        always(MissingLibrary, when="load"),
        (
            "Error loading shared library libstdc++.so.6: No such file or directory (needed by /w/a)",
            MissingLibrary(library="libstdc++.so.6", when="load"),
        ),
    ),
    signature(
        ("in java.library.path", "UnsatisfiedLinkError: "),
        RAISED + r"(?:java\.lang\.)?(?:UnsatisfiedLinkError: )?(?:[Nn]o (?P<first>[\w.-]{1,60}) in java\.library\.path"
        r"|Unable to load library '(?P<second>[\w.-]{1,60})')",
        _jvm_library,
        (
            "java.lang.UnsatisfiedLinkError: no hyperic in java.library.path: /usr/lib",
            MissingLibrary(library="hyperic", when="load"),
        ),
    ),
    signature(
        "symbol lookup error: ",
        r"\S{1,200}: symbol lookup error: (?P<library>[^\s:]{1,200}): undefined symbol: \S{1,200}",
        always(MissingLibrary, when="load", weight=Weight.SYMPTOM),
        (
            "/usr/bin/foo: symbol lookup error: /usr/lib/libbar.so.1: undefined symbol: baz_init",
            MissingLibrary(library="/usr/lib/libbar.so.1", when="load", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "library is missing or cannot be opened",
        r"(?:.{0,120}?reason: )?(?:Instance failed to start because a )?library is missing or cannot be opened: "
        r"\"(?P<library>[^\"\s]{1,120})\"",
        always(MissingLibrary, when="load"),
        (
            'Error: Instance failed to start because a library is missing or cannot be opened: "libcrypto.so.1.1"',
            MissingLibrary(library="libcrypto.so.1.1", when="load"),
        ),
    ),
    signature(
        "not found (required by",
        r"(?:\S{1,200}: )?(?P<library>/\S{1,200}\.so[\w.]{0,16}): version [`'](?!GLIBC"
        r"|CXXABI)[A-Z]\w{1,40}[\d._]{0,12}' not found",
        always(MissingLibrary, when="load", weight=Weight.SYMPTOM),
        (
            "./mongod: /lib/x/libcurl.so.4: version `CURL_OPENSSL_3' not found (required by ./mongod)",
            MissingLibrary(library="/lib/x/libcurl.so.4", when="load", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "ibrary not found",
        r"- couldn't import \w{1,40} '\w{1,20}' implementation: (?P<library>lib\w{1,20}) library not found",
        _short_library,
        (
            "E   - couldn't import psycopg 'python' implementation: libpq library not found",
            MissingLibrary(library="pq", when="load"),
        ),
    ),
)
"""What the dynamic loader says, and those who call it."""
