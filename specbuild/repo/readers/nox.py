"""noxfile.py, by its syntax tree."""

from __future__ import annotations

import ast
import re

from specbuild.repo.facts import TestEnv
from specbuild.repo.readers import python_source
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.literals import Scope, Text, texts_of
from specbuild.repo.readers.requirements import requirement_of
from specbuild.repo.readers.tree import Tree

FILE = "noxfile.py"
_INSTALLS = ("install", "conda_install")
_RUNS = ("run", "run_always", "run_install")
MAX_SESSIONS = 60


def read(tree: Tree, found: Findings) -> None:
    """Sessions with the literal arguments of their install and run calls; computed arguments are left out."""
    module = python_source.parse_module(tree, FILE)
    if module is None:
        return
    scope = Scope(module, lambda path: [])
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and _is_session(node)]
    helpers = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef) and not _is_session(node)}
    for function in functions[:MAX_SESSIONS]:
        env = _session(tree, scope, function, helpers)
        found.test_envs.append(env)
        for dep in env.deps:
            if (requirement := requirement_of(dep)) and not dep.startswith((".", "-")):
                found.add_dependency(requirement, f"nox:{env.name}", env.evidence)


def _is_session(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).split("(")[0] in ("nox.session", "session") for decorator in node.decorator_list)


def _name(scope: Scope, node: ast.FunctionDef) -> str:
    for decorator in node.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else []:
            if keyword.arg == "name" and (texts := scope.texts(keyword.value)):
                return texts[0].value
    return node.name


def _session(tree: Tree, scope: Scope, node: ast.FunctionDef, helpers: dict[str, ast.FunctionDef]) -> TestEnv:
    calls = _calls(node, helpers)
    installs = [_words(scope, call) for call in calls if python_source.callee(call) in _INSTALLS]
    runs = [_words(scope, call) for call in calls if python_source.callee(call) in _RUNS]
    deps = [dep for words in installs for dep in _deps(words)]
    extras = [e for dep in deps if (m := re.match(r"(?:-e )?\.\[([^\]]+)\]", dep)) for e in m[1].split(",")]
    groups = [words[n + 1] for words in [*installs, *runs] for n, w in enumerate(words[:-1]) if w == "--group"]
    return TestEnv(
        tool="nox",
        name=_name(scope, node),
        deps=tuple(deps),
        extras=tuple(extra.strip() for extra in extras),
        groups=tuple(groups),
        commands=tuple(command for words in runs if (command := " ".join(words).strip())),
        env=_env(scope, calls),
        evidence=tree.evidence(FILE, node.lineno),
    )


def _calls(node: ast.FunctionDef, helpers: dict[str, ast.FunctionDef]) -> list[ast.Call]:
    """Calls in a session in the order of the source, those of its helper functions in their place, one level deep."""
    own = sorted(
        (n for n in ast.walk(node) if isinstance(n, ast.Call)), key=lambda call: (call.lineno, call.col_offset)
    )
    result: list[ast.Call] = []
    for call in own:
        helper = helpers.get(call.func.id) if isinstance(call.func, ast.Name) else None
        inner = [n for n in ast.walk(helper) if isinstance(n, ast.Call)] if helper else [call]
        result += sorted(inner, key=lambda n: (n.lineno, n.col_offset))
    return [
        call for call in result if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "session"
    ]


def _words(scope: Scope, call: ast.Call) -> list[str]:
    words: list[str] = []
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            words += [text.value for text in scope.texts(argument.value)]
        elif isinstance(value := scope.value(argument), Text):
            words.append(value.value)
        elif isinstance(argument, ast.BoolOp):
            words += [text.value for value in argument.values for text in scope.texts(value)]
    return words


def _deps(words: list[str]) -> list[str]:
    """Arguments of an install, with the file or folder of `-r`, `-c` and `-e` kept beside it."""
    result: list[str] = []
    skip = False
    for n, word in enumerate(words):
        if skip:
            skip = False
        elif word in ("-r", "-c", "-e", "--requirement", "--constraint", "--editable") and n + 1 < len(words):
            result.append(f"{'-' + word.lstrip('-')[0]} {words[n + 1]}")
            skip = True
        elif word in ("--group", "--index-url", "-i", "--extra-index-url", "-f", "--find-links"):
            skip = True
        elif not word.startswith("-") or re.match(r"-[re]\S", word):
            result.append(word)
    return result


def _env(scope: Scope, calls: list[ast.Call]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for call in calls:
        for keyword in call.keywords:
            value = scope.value(keyword.value) if keyword.arg == "env" else None
            if isinstance(value, dict):
                pairs += [(key, texts[0].value) for key, item in value.items() if (texts := texts_of(item))]
    return tuple(dict.fromkeys(pairs))
