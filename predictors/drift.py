"""Breaks between releases of widely used distributions: which release removed what.

From their change logs, held against the releases themselves. A break that is not listed is still found, without the
release that made it.
"""

from __future__ import annotations

from specbuild.failures import DriftedBackend, Failure

MODULES: dict[str, tuple[str, str]] = {
    "pkg_resources": ("setuptools", "82"),
    "werkzeug.contrib": ("werkzeug", "1"),
    "werkzeug.contrib.fixers": ("werkzeug", "1"),
    "werkzeug.contrib.cache": ("werkzeug", "1"),
    "flask.ext": ("flask", "1"),
    "flask._compat": ("flask", "2"),
    "sklearn.externals.joblib": ("sklearn", "0.23"),
    "django.utils.six": ("django", "3"),
    "django.core.urlresolvers": ("django", "2"),
}
"""Module → the module it comes with, and the first release without it."""

NAMES: dict[tuple[str, str], str] = {
    ("flask", "Markup"): "3",
    ("flask", "escape"): "3",
    ("flask", "json_available"): "2",
    ("flask", "_request_ctx_stack"): "3",
    ("flask", "_app_ctx_stack"): "3",
    ("jinja2", "Markup"): "3.1",
    ("jinja2", "escape"): "3.1",
    ("jinja2", "contextfilter"): "3.1",
    ("jinja2", "contextfunction"): "3.1",
    ("jinja2", "environmentfilter"): "3.1",
    ("jinja2", "evalcontextfilter"): "3.1",
    ("markupsafe", "soft_unicode"): "2.1",
    ("itsdangerous", "json"): "2.1",
    ("itsdangerous", "TimedJSONWebSignatureSerializer"): "2.1",
    ("werkzeug", "secure_filename"): "1",
    ("werkzeug", "cached_property"): "1",
    ("werkzeug", "BaseResponse"): "1",
    ("werkzeug", "url_quote"): "1",
    ("werkzeug", "url_decode"): "1",
    **{("numpy", name): "1.24" for name in ("int", "float", "bool", "object", "str", "complex", "long", "unicode")},
    **{("numpy", name): "2" for name in ("float_", "complex_", "unicode_", "string_", "NaN", "Inf", "infty")},
    ("numpy", "product"): "2",
    ("numpy", "cumproduct"): "2",
    ("numpy", "alltrue"): "2",
    ("numpy", "sometrue"): "2",
    ("numpy", "in1d"): "2.4",
    ("numpy", "trapz"): "2.4",
    ("sqlalchemy", "MetaData"): "",
    ("pydantic", "BaseSettings"): "2",
    ("scipy", "comb"): "1",
    ("attr", "make_class"): "",
    ("markdown", "etree"): "3.4",
    ("pytest", "config"): "5",
}
"""(Top-level module, name) → the first release without it."""

METHODS: dict[tuple[str, str], tuple[str, str]] = {
    ("Engine", "execute"): ("sqlalchemy", "2"),
    ("Engine", "table_names"): ("sqlalchemy", "2"),
    ("Engine", "has_table"): ("sqlalchemy", "2"),
    ("Engine", "scalar"): ("sqlalchemy", "2"),
    ("OptionEngine", "execute"): ("sqlalchemy", "2"),
    ("DataFrame", "append"): ("pandas", "2"),
    ("Series", "append"): ("pandas", "2"),
    ("DataFrame", "iteritems"): ("pandas", "2"),
    ("Series", "iteritems"): ("pandas", "2"),
    ("DataFrame", "ix"): ("pandas", "1"),
    ("FreeTypeFont", "getsize"): ("PIL", "10"),
    ("ImageDraw", "textsize"): ("PIL", "10"),
    ("Flask", "before_first_request"): ("flask", "2.3"),
    ("Flask", "json_encoder"): ("flask", "2.3"),
    ("EntryPoints", "get"): ("importlib_metadata", "5"),
}
"""(Class, method) → module and the first release without it."""

ARGUMENTS: dict[tuple[str, str], tuple[str, str]] = {
    **{(owner, name): ("httpx", "0.28") for owner in ("Client", "AsyncClient") for name in ("app", "proxies")},
    ("OneHotEncoder", "sparse"): ("sklearn", "1.4"),
    ("Retry", "method_whitelist"): ("urllib3", "2"),
    ("Popen", "bufsize"): ("", ""),
}
"""(Class or function, argument) → module and the first release without it."""

_BACKENDS: dict[str, tuple[str, str]] = {"cython_sources": ("cython", "3")}


def backend_method(owner: str, name: str, evidence: str) -> Failure | None:
    """What build extensions lost when what they build upon moved on."""
    if known := _BACKENDS.get(name):
        backend, below = known
        return DriftedBackend(backend=backend, name=f"{owner}.{name}", below=below, evidence=evidence)
    return None
