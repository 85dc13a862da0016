"""Compiled code that the build will produce, and its languages."""

from __future__ import annotations

import ast
import re
from posixpath import dirname, splitext

from specbuild.repo.readers import python_source, setup_py
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.languages import BY_EXTENSION, NOT_OWN
from specbuild.repo.readers.layout import TEST_FOLDERS
from specbuild.repo.readers.literals import Scope, Text, texts_of
from specbuild.repo.readers.toml import Toml, list_of, load, table_of
from specbuild.repo.readers.tree import Tree

_COMPILED = frozenset({"c", "c++", "cython", "rust", "fortran", "go", "cuda"})
_CLASSES = ("Extension", "Pybind11Extension", "CMakeExtension", "RustExtension", "CythonExtension", "NumpyExtension")
_CMAKE = {"C": "c", "CXX": "c++", "Fortran": "fortran", "CUDA": "cuda"}
_MESON = {"c": "c", "cpp": "c++", "cython": "cython", "fortran": "fortran", "rust": "rust", "cuda": "cuda"}
_MAY_FAIL = re.compile(
    r"except\b[^:\n]*(CCompilerError|DistutilsExecError|DistutilsPlatformError|CompileError|BuildFailed|BuildExtError)"
    r"|except ext_errors|ve_build_ext|raise BuildFailed|optional_build_ext"
)
"""Marks of a setup.py that goes on without its extensions when they do not compile."""


def read(tree: Tree, found: Findings) -> None:
    """Extensions of setup.py, of pyproject.toml, and of the build systems that pyproject.toml names."""
    toml = load(tree, "pyproject.toml")
    _setup_py(tree, found)
    if toml is not None:
        _setuptools_tables(tree, toml, found)
    backend = found.build_backend.value if found.build_backend else ""
    requires = " ".join(fact.value.lower() for fact in found.build_requires)
    if "maturin" in backend or (toml and toml.table("tool", "maturin")):
        _cargo(tree, found)
    if "mesonpy" in backend:
        _meson(tree, found)
    if "scikit" in backend or "skbuild" in backend or "scikit-build" in requires or "py_build_cmake" in backend:
        _cmake(tree, found)
    if "mypyc" in requires or (toml and "mypyc" in str(toml.table("tool", "hatch", "build"))):
        found.add_extension("c", "mypyc", tree.evidence("pyproject.toml"), optional=True)


def _setup_py(tree: Tree, found: Findings) -> None:
    module = python_source.parse_module(tree, "setup.py")
    if module is None:
        return
    scope = Scope(module, lambda path: [])
    text = tree.text("setup.py") or ""
    optional = _MAY_FAIL.search(text) is not None
    before = len(found.extensions)
    for call in python_source.calls(module, *_CLASSES):
        _extension(tree, found, scope, call, optional)
    for call in python_source.calls(module, "cythonize"):
        found.add_extension(
            "cython", _first_text(scope, call), tree.evidence("setup.py", call.lineno), optional=optional
        )
    for setup in setup_py.setup_calls(tree):
        for source in texts_of(setup.arguments.get("cffi_modules")):
            found.add_extension("cffi", source.value, tree.evidence("setup.py", source.line), optional=optional)
        computed = {"ext_modules", "rust_extensions"} & set(setup.arguments) or not setup.complete
        if len(found.extensions) == before and computed:
            _by_sources(tree, found, optional)


def _extension(tree: Tree, found: Findings, scope: Scope, call: ast.Call, optional: bool) -> None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    flag = scope.value(keywords.get("optional")) is True
    evidence = tree.evidence("setup.py", call.lineno)
    kind = python_source.callee(call)
    sources = scope.texts(keywords.get("sources") or (call.args[1] if len(call.args) > 1 else None))
    languages = {_language(text.value) for text in sources} - {""}
    declared = scope.value(keywords.get("language"))
    if isinstance(declared, Text) and declared.value in ("c", "c++"):
        languages = {declared.value, *(languages & {"cython"})}
    if kind == "RustExtension":
        languages = {"rust"}
    elif kind in ("Pybind11Extension", "CMakeExtension"):
        languages = {"c++"}
    if not languages:
        _by_sources(tree, found, optional or flag, name=_first_text(scope, call))
    for language in sorted(languages):
        found.add_extension(language, _first_text(scope, call), evidence, optional=optional or flag)


def _first_text(scope: Scope, call: ast.Call) -> str:
    nodes = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "name")]
    return next((text.value for node in nodes for text in scope.texts(node)), "")


def _language(path: str) -> str:
    language = BY_EXTENSION.get(splitext(path)[1].lower(), "")
    return language if language in _COMPILED else ""


def _by_sources(tree: Tree, found: Findings, optional: bool, name: str = "") -> None:
    """Where setup.py computes its extensions or their sources: the compiled languages of the sources that lie about."""
    seen: set[str] = set()
    for path in tree.files:
        language = _language(path)
        folders = path.lower().split("/")[:-1]
        own = not NOT_OWN.intersection(folders) and not any(TEST_FOLDERS.match(folder) for folder in folders)
        if own and language and language not in seen and not path.endswith(".h"):
            seen.add(language)
            found.add_extension(language, name, tree.evidence(path), optional=optional)
    if not seen and name:
        found.add_extension("c", name, tree.evidence("setup.py"), optional=optional)


def _setuptools_tables(tree: Tree, toml: Toml, found: Findings) -> None:
    for item in toml.array("tool", "setuptools", "ext-modules"):
        sources = [source for source in list_of(table_of(item).get("sources")) if isinstance(source, str)]
        name, declared = str(table_of(item).get("name", "")), str(table_of(item).get("language", ""))
        languages = {declared} & _COMPILED or {_language(source) for source in sources} - {""} or {"c"}
        for language in sorted(languages):
            optional = table_of(item).get("optional") is True
            found.add_extension(language, name, toml.evidence("tool", "setuptools", "ext-modules"), optional=optional)
    for item in toml.array("tool", "setuptools-rust", "ext-modules"):
        name = str(table_of(item).get("target", ""))
        optional = table_of(item).get("optional") is True
        found.add_extension("rust", name, toml.evidence("tool", "setuptools-rust", "ext-modules"), optional=optional)
    for path in (("tool", "poetry", "build"), ("tool", "poetry", "build", "script")):
        script = toml.get(*path)
        if isinstance(script, str) and re.search(
            r"cythonize|Extension|ffibuilder|ffi\.compile", tree.text(script) or ""
        ):
            language = "cython" if "cythonize" in (tree.text(script) or "") else "c"
            found.add_extension(language, "", toml.evidence(*path))


def _cargo(tree: Tree, found: Findings) -> None:
    toml = load(tree, "pyproject.toml")
    manifest = (toml.string("tool", "maturin", "manifest-path") if toml else "") or "Cargo.toml"
    cargo = load(tree, manifest)
    name = (cargo.string("lib", "name") or cargo.string("package", "name")) if cargo else ""
    evidence = cargo.evidence("package") if cargo else tree.evidence("pyproject.toml")
    found.add_extension("rust", name, evidence)


def _meson(tree: Tree, found: Findings) -> None:
    """The languages of project() and of add_languages() in any meson.build outside of subprojects."""
    for file in [p for p in tree.match("meson.build", "*/meson.build") if not NOT_OWN.intersection(p.split("/"))][:200]:
        text = "\n".join(line.split("#")[0] for line in tree.lines(file))
        for call in re.finditer(r"\b(project|add_languages)\s*\(", text):
            body = text[call.end() : call.end() + 2_000].split(")")[0]
            words = re.split(r"\b\w+\s*:", body)[0]
            names = re.findall(r"'([^']*)'", words)[1 if call[1] == "project" else 0 :]
            line = text.count("\n", 0, call.start()) + 1
            for name in names:
                if name.lower() in _MESON:
                    found.add_extension(_MESON[name.lower()], "", tree.evidence(file, line))


def _cmake(tree: Tree, found: Findings) -> None:
    """The languages of project() in the top CMakeLists.txt, and Cython if its sources are there."""
    for file in sorted(tree.match("CMakeLists.txt", "*/CMakeLists.txt"), key=lambda p: p.count("/"))[:1]:
        text = re.sub(r"#.*", "", tree.text(file) or "")
        match = re.search(r"\bproject\s*\(([^)]*)\)", text, re.IGNORECASE)
        words = match[1].replace("$", " $").split() if match else []
        languages = [_CMAKE[word] for word in words[1:] if word in _CMAKE] or ["c", "c++"]
        line = text.count("\n", 0, match.start()) + 1 if match else None
        for language in languages:
            found.add_extension(language, "", tree.evidence(file, line))
    pyx = next((path for path in tree.files if path.endswith(".pyx") and dirname(path)), None)
    if pyx:
        found.add_extension("cython", "", tree.evidence(pyx))
