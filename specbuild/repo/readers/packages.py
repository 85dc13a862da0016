"""Import names of the project's packages: as declared, as an earlier build recorded them, or as the folders show."""

from __future__ import annotations

import re
from posixpath import basename

from specbuild.repo.facts import Evidence
from specbuild.repo.readers import ini, setup_py
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.literals import texts_of
from specbuild.repo.readers.requirement import canonical
from specbuild.repo.readers.toml import Toml, load, strings_of, table_of
from specbuild.repo.readers.tree import Tree

NOT_PACKAGES = frozenset(
    {
        "tests", "test", "testing", "t", "functional_tests", "unit_tests", "docs", "doc", "documentation",
        "examples", "example", "samples", "sample", "tutorial", "images", "tutorials", "demo", "demos", "bench",
        "benchmark", "benchmarks", "scripts", "script", "tools", "tool", "utils", "ci", "build", "dist",
        "tasks", "notebooks", "contrib", "misc", "extras", "packaging", "requirements", "bin", "etc", "ext",
        "debian", "config", "perf", "asv_bench", "fuzz", "fuzzing", "src", "lib", "changes", "news",
    }
)  # fmt: skip
"""Folder names that seldom hold what a project installs; one that carries the project's own name does all the same."""
NOT_MODULES = frozenset(
    {
        "setup", "conftest", "noxfile", "tasks", "fabfile", "manage", "runtests", "runtest", "versioneer",
        "ez_setup", "conf", "build", "dodo", "wsgi", "bootstrap", "distribute_setup", "hatch_build",
        "pavement", "make", "release", "toxfile",
    }
)  # fmt: skip

_MODULES: tuple[tuple[str, ...], ...] = (
    ("tool", "flit", "module", "name"),
    ("tool", "flit", "metadata", "module"),
    ("tool", "maturin", "module-name"),
)


def read(tree: Tree, found: Findings) -> None:
    """Declared packages that are really there; else those of top_level.txt; else those that the layout shows."""
    roots: list[str] = []
    _from_pyproject(tree, found, roots)
    _from_setup_cfg(tree, found, roots)
    _from_setup_py(tree, found, roots)
    if not found.packages:
        _from_top_level(tree, found)
    _from_extensions(found)
    if not found.packages:
        _generated(tree, found)
    if not found.packages:
        _from_layout(tree, found, [root for root in dict.fromkeys(roots) if root in tree.folders])


def _from_extensions(found: Findings) -> None:
    """A compiled module at the top that carries the project's name, or is all there is, is imported by its own name."""
    own_name = canonical(found.name.value) if found.name else ""
    others = bool(found.packages)
    for extension in found.extensions:
        is_top = re.fullmatch(r"[A-Za-z]\w*", extension.name) and extension.evidence.file == "setup.py"
        if is_top and (not others or canonical(extension.name) in _forms(own_name)):
            found.add_package(extension.name, extension.evidence)


def _generated(tree: Tree, found: Findings) -> None:
    """Modules that setup.py declares and that only the build will make."""
    for call in setup_py.setup_calls(tree):
        for text in texts_of(call.arguments.get("py_modules")):
            found.add_package(text.value, tree.evidence("setup.py", text.line))


def _add(tree: Tree, found: Findings, name: str, root: str, evidence: Evidence) -> None:
    """Add a declared package if its folder or module is there, in the given root or in a usual one."""
    top = name.strip().split(".")[0]
    for folder in dict.fromkeys((root, "", "src", "lib", "python")):
        path = f"{folder}/{top}" if folder else top
        if path in tree.folders or tree.has(f"{path}.py") or tree.has(f"{path}.pyx"):
            found.add_package(top, evidence)
            return


def _from_pyproject(tree: Tree, found: Findings, roots: list[str]) -> None:
    toml = load(tree, "pyproject.toml")
    if toml is None:
        return
    _setuptools(tree, toml, found, roots)
    _poetry(tree, toml, found)
    for table in ("targets", "wheel"), ():
        path = ("tool", "hatch", "build", *table, "packages")
        for package in toml.strings(*path):
            found.add_package(basename(package.rstrip("/")), toml.evidence(*path, item=package))
    for path in _MODULES:
        if module := toml.string(*path):
            found.add_package(module, toml.evidence(*path))
    if source := toml.string("tool", "maturin", "python-source"):
        roots.append(source.strip("./"))
    backend_root = toml.strings("tool", "uv", "build-backend", "module-root") or toml.strings(
        "tool", "pdm", "build", "package-dir"
    )
    roots += [root.strip("./") for root in backend_root]
    for module in toml.strings("tool", "uv", "build-backend", "module-name"):
        found.add_package(module, toml.evidence("tool", "uv", "build-backend", "module-name"))


def _setuptools(tree: Tree, toml: Toml, found: Findings, roots: list[str]) -> None:
    base = ("tool", "setuptools")
    directories = table_of(toml.get(*base, "package-dir"))
    root = str(directories.get("", "")).strip("./")
    roots += [root] if root else []
    roots += [where.strip("./") for where in toml.strings(*base, "packages", "find", "where")]
    for key in ("packages", "py-modules"):
        for name in strings_of(toml.get(*base, key)):
            if name in directories:
                found.add_package(name, toml.evidence(*base, key, item=name))
            else:
                _add(tree, found, name, root, toml.evidence(*base, key, item=name))


def _poetry(tree: Tree, toml: Toml, found: Findings) -> None:
    for package in toml.array("tool", "poetry", "packages"):
        include, root = table_of(package).get("include"), table_of(package).get("from", "")
        if isinstance(include, str) and not NOT_PACKAGES.intersection([include.split("/")[0]]):
            evidence = toml.evidence("tool", "poetry", "packages", item=include)
            _add(tree, found, include.split("/")[0].removesuffix(".py"), str(root), evidence)


def _from_setup_cfg(tree: Tree, found: Findings, roots: list[str]) -> None:
    config = ini.parse(tree.text("setup.cfg") or "")
    options = config.get("options", {})
    root = ""
    for line in options.get("package_dir", []):
        name, _, folder = line.text.partition("=")
        if not name.strip():
            root = folder.strip().strip("./")
    roots += [root] if root else []
    roots += [line.text.strip("./") for line in config.get("options.packages.find", {}).get("where", [])]
    pbr = config.get("files", {})
    for lines in (
        options.get("packages", []),
        options.get("py_modules", []),
        pbr.get("packages", []),
        pbr.get("modules", []),
    ):
        for line in ini.items(lines):
            if re.fullmatch(r"[\w.]+", line.text):
                _add(tree, found, line.text, root, tree.evidence("setup.cfg", line.number))


def _from_setup_py(tree: Tree, found: Findings, roots: list[str]) -> None:
    for call in setup_py.setup_calls(tree):
        directories = call.arguments.get("package_dir")
        root = ""
        if isinstance(directories, dict):
            root = next((t.value.strip("./") for t in texts_of(directories.get(""))), "")
            for name, folder in directories.items():
                if name and texts_of(folder):
                    found.add_package(name, tree.evidence("setup.py", call.line))
        roots += [root] if root else []
        roots += [where.strip("./") for where in call.find_roots]
        for key in ("packages", "py_modules"):
            for text in texts_of(call.arguments.get(key)):
                if text.value.split(".")[0] not in NOT_PACKAGES:
                    _add(tree, found, text.value, root, tree.evidence("setup.py", text.line))


def _from_top_level(tree: Tree, found: Findings) -> None:
    for file in tree.match("*.egg-info/top_level.txt"):
        names = [(n, name.strip()) for n, name in enumerate(tree.lines(file), 1) if name.strip()]
        own = [(n, name) for n, name in names if name not in NOT_PACKAGES] or names
        for number, name in own if file.count("/") <= 2 else []:
            found.add_package(name.split("/")[-1], tree.evidence(file, number))


def _from_layout(tree: Tree, found: Findings, roots: list[str]) -> None:
    own_name = canonical(found.name.value) if found.name else ""
    for root in roots or ["src", "", "lib", "python"]:
        candidates = _packages_in(tree, root, own_name)
        # A project has one package by custom; when one carries its name, further folders are helpers.
        named = [c for c in candidates if own_name and canonical(c[0]) in _forms(own_name)]
        for name, file in named if named and not root else candidates:
            found.add_package(name, Evidence(file=file))
        if found.packages:
            return


def _forms(own_name: str) -> tuple[str, ...]:
    """Import names that a project's name suggests."""
    return (
        own_name,
        re.sub(r"^(python|py)-?|-?(python|py)$", "", own_name),
        f"py-{own_name}",
        own_name.replace("-", ""),
    )


def _packages_in(tree: Tree, root: str, own_name: str) -> list[tuple[str, str]]:
    prefix = f"{root}/" if root else ""
    depth = prefix.count("/")
    found: dict[str, str] = {}
    modules: dict[str, str] = {}
    for path in tree.files:
        if not path.startswith(prefix):
            continue
        parts = path[len(prefix) :].split("/")
        own = canonical(parts[0].removesuffix(".py")) in _forms(own_name)
        if len(parts) == 2 and parts[1] == "__init__.py" and (own or parts[0] not in NOT_PACKAGES):
            found.setdefault(parts[0], path)
        elif len(parts) == 1 and path.endswith(".py") and _is_module(parts[0][:-3], own, depth):
            modules.setdefault(parts[0][:-3], path)
        elif len(parts) == 3 and parts[2] == "__init__.py" and (own or root == "src") and "." not in parts[0]:
            found.setdefault(parts[0], path)  # a namespace package
    named = {name: path for name, path in modules.items() if canonical(name) in _forms(own_name)}
    # In a src folder all modules are meant; at the root one that carries the project's name, or what there is.
    beside = modules if root == "src" else named
    result = {**found, **beside} if found or named else modules
    return [(name, path) for name, path in result.items() if name.isidentifier()]


def _is_module(name: str, own: bool, depth: int) -> bool:
    if own or depth:
        return name != "conftest"
    return name not in NOT_MODULES and not re.match(r"test|.*_?tests?$|_", name)
