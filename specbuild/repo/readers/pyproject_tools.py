"""pyproject.toml: tables of poetry, pdm, hatch, flit, uv, and of tools for versions from version control."""

from __future__ import annotations

import re
from typing import Any

from specbuild.repo.facts import TestEnv
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.requirement import from_poetry, name_of, poetry_python
from specbuild.repo.readers.requirements import flattened
from specbuild.repo.readers.toml import Table, Toml, list_of, strings_of, table_of
from specbuild.repo.readers.tree import Tree

_SCM_TABLES = (
    (("setuptools_scm",), "setuptools-scm"),
    (("setuptools-git-versioning",), "setuptools-git-versioning"),
    (("versioneer",), "versioneer"),
    (("versioningit",), "versioningit"),
    (("poetry-dynamic-versioning",), "poetry-dynamic-versioning"),
    (("uv-dynamic-versioning",), "uv-dynamic-versioning"),
    (("pbr",), "pbr"),
)


def read(tree: Tree, toml: Toml, found: Findings) -> None:
    """Every known table below `[tool]`."""
    _poetry(toml, found)
    _pdm(toml, found)
    _uv(toml, found)
    _flit(toml, found)
    _hatch(toml, found)
    _dynamic(tree, toml, found)
    _scm(toml, found)


def _poetry(toml: Toml, found: Findings) -> None:
    base = ("tool", "poetry")
    if not toml.table(*base):
        return
    found.offer_name(toml.string(*base, "name"), toml.evidence(*base, "name"))
    found.offer_version(toml.string(*base, "version"), toml.evidence(*base, "version"))
    for classifier in toml.strings(*base, "classifiers"):
        found.add_classifier(classifier, toml.evidence(*base, "classifiers", item=classifier))
    dependencies = toml.table(*base, "dependencies")
    python = dependencies.get("python")
    if isinstance(python, str):
        found.offer_requires_python(poetry_python(python), toml.evidence(*base, "dependencies", "python"))
    optional = _poetry_table(toml, found, (*base, "dependencies"), "")
    _poetry_table(toml, found, (*base, "dev-dependencies"), "group:dev")
    for group in toml.table(*base, "group"):
        _poetry_table(toml, found, (*base, "group", group, "dependencies"), f"group:{group}")
    for extra, names in toml.table(*base, "extras").items():
        for name in strings_of(names):
            for requirement in optional.get(name_of(name), []):
                found.add_dependency(requirement, f"extra:{extra}", toml.evidence(*base, "extras", extra))


def _poetry_table(toml: Toml, found: Findings, path: tuple[str, ...], group: str) -> dict[str, list[str]]:
    """Add a table of Poetry dependencies; gives back the optional ones, which belong to extras instead."""
    optional: dict[str, list[str]] = {}
    for name, spec in toml.table(*path).items():
        if name == "python":
            continue
        for item in list_of(spec) or [spec]:
            requirement = _poetry_requirement(name, item)
            if table_of(item).get("optional") is True:
                optional.setdefault(name_of(name), []).append(requirement)
            elif requirement:
                found.add_dependency(requirement, group, toml.evidence(*path, name))
    return optional


def _poetry_requirement(name: str, spec: Any) -> str:
    """PEP 508 for one Poetry dependency; empty for a folder beside the project."""
    if isinstance(spec, str):
        return from_poetry(name, spec)
    table = table_of(spec)
    extras = ",".join(strings_of(table.get("extras")))
    full = f"{name}[{extras}]" if extras else name
    if url := _poetry_url(table):
        requirement = f"{full} @ {url}"
    elif "path" in table:
        return ""
    else:
        version = table.get("version")
        requirement = from_poetry(full, version if isinstance(version, str) else "")
    markers = _poetry_markers(table)
    return f"{requirement} ; {markers}" if markers else requirement


def _poetry_url(table: Table) -> str:
    git = table.get("git")
    if isinstance(git, str):
        revision = next((r for key in ("rev", "tag", "branch") if isinstance(r := table.get(key), str)), "")
        return f"git+{git}@{revision}" if revision else f"git+{git}"
    url = table.get("url")
    return url if isinstance(url, str) else ""


def _poetry_markers(table: Table) -> str:
    parts: list[str] = []
    if isinstance(markers := table.get("markers"), str):
        parts.append(f"({markers})" if " or " in markers else markers)
    if isinstance(python := table.get("python"), str):
        found = re.finditer(r"([<>=!~]+)([^,]+)", poetry_python(python))
        parts += [f"python_version {match[1]} '{match[2]}'" for match in found]
    return " and ".join(parts)


def _pdm(toml: Toml, found: Findings) -> None:
    for group, requirements in toml.table("tool", "pdm", "dev-dependencies").items():
        for requirement in strings_of(requirements):
            evidence = toml.evidence("tool", "pdm", "dev-dependencies", group, item=requirement)
            found.add_dependency(re.sub(r"^-e\s+", "", requirement), f"group:{group}", evidence)
    if toml.string("tool", "pdm", "version", "source") == "scm":
        found.offer_scm("pdm-backend", toml.evidence("tool", "pdm", "version", "source"))


def _uv(toml: Toml, found: Findings) -> None:
    for requirement in toml.strings("tool", "uv", "dev-dependencies"):
        evidence = toml.evidence("tool", "uv", "dev-dependencies", item=requirement)
        found.add_dependency(requirement, "group:dev", evidence)
    for name, source in toml.table("tool", "uv", "sources").items():
        git = next((g for item in list_of(source) or [source] if isinstance(g := table_of(item).get("git"), str)), "")
        if git:
            found.add_dependency(f"{name} @ git+{git}", "uv:sources", toml.evidence("tool", "uv", "sources", name))


def _flit(toml: Toml, found: Findings) -> None:
    base = ("tool", "flit", "metadata")
    module = toml.string(*base, "module") or toml.string("tool", "flit", "module", "name")
    if not toml.table(*base):
        return
    found.offer_name(toml.string(*base, "dist-name") or module, toml.evidence(*base, "module"))
    found.offer_requires_python(toml.string(*base, "requires-python"), toml.evidence(*base, "requires-python"))
    for classifier in toml.strings(*base, "classifiers"):
        found.add_classifier(classifier, toml.evidence(*base, "classifiers", item=classifier))
    for requirement in toml.strings(*base, "requires"):
        found.add_dependency(requirement, "", toml.evidence(*base, "requires", item=requirement))
    for extra, requirements in toml.table(*base, "requires-extra").items():
        for requirement in strings_of(requirements):
            evidence = toml.evidence(*base, "requires-extra", extra, item=requirement)
            found.add_dependency(requirement, f"extra:{extra}", evidence)


def _hatch(toml: Toml, found: Findings) -> None:
    source = toml.string("tool", "hatch", "version", "source")
    if source in ("vcs", "versioningit"):
        tool = "hatch-vcs" if source == "vcs" else source
        found.offer_scm(tool, toml.evidence("tool", "hatch", "version", "source"))
    for name, env in toml.table("tool", "hatch", "envs").items():
        _hatch_env(toml, found, name, table_of(env))


def _hatch_env(toml: Toml, found: Findings, name: str, env: Table) -> None:
    base = ("tool", "hatch", "envs", name)
    deps = [*strings_of(env.get("dependencies")), *strings_of(env.get("extra-dependencies"))]
    scripts = table_of(env.get("scripts"))
    found.test_envs.append(
        TestEnv(
            tool="hatch",
            name=name,
            deps=tuple(deps),
            extras=tuple(strings_of(env.get("features"))),
            groups=tuple(strings_of(env.get("dependency-groups"))),
            commands=tuple(_hatch_commands(scripts)),
            env=tuple((key, str(value)) for key, value in table_of(env.get("env-vars")).items()),
            evidence=toml.evidence(*base),
        )
    )
    for requirement in deps:
        found.add_dependency(requirement, f"hatch:{name}", toml.evidence(*base, "dependencies", item=requirement))


def _hatch_commands(scripts: Table) -> list[str]:
    """The commands of all scripts, with references to other scripts and `{args:default}` filled in."""
    commands: list[str] = []
    for script in scripts.values():
        for command in strings_of(script):
            head = command.split(" ")[0]
            if head not in scripts:
                commands.append(re.sub(r"\{args(?::([^}]*))?\}", lambda m: m[1] or "", command).strip())
    return commands


def _dynamic(tree: Tree, toml: Toml, found: Findings) -> None:
    """Requirements that setuptools, or hatchling by its plug-in, takes from files."""
    hatch = ("tool", "hatch", "metadata", "hooks", "requirements_txt")
    dynamic = ("tool", "setuptools", "dynamic")
    _from_files(tree, found, toml.strings(*dynamic, "dependencies", "file"), "")
    _from_files(tree, found, [*toml.strings(*hatch, "files"), *toml.strings(*hatch, "filename")], "")
    for extra, spec in toml.table(*dynamic, "optional-dependencies").items():
        _from_files(tree, found, strings_of(table_of(spec).get("file")), f"extra:{extra}")
    for extra, files in toml.table(*hatch, "optional-dependencies").items():
        _from_files(tree, found, strings_of(files), f"extra:{extra}")


def _from_files(tree: Tree, found: Findings, files: list[str], group: str) -> None:
    for file in files:
        for entry in flattened(tree, file.removeprefix("./")):
            found.add_dependency(entry.requirement, group, entry.evidence)


def _scm(toml: Toml, found: Findings) -> None:
    for path, tool in _SCM_TABLES:
        if path[0] in toml.table("tool"):
            found.offer_scm(tool, toml.evidence("tool", *path))
    if toml.string("tool", "scikit-build", "metadata", "version", "provider").endswith("setuptools_scm"):
        found.offer_scm("setuptools-scm", toml.evidence("tool", "scikit-build", "metadata", "version", "provider"))
