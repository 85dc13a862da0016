"""tox: tox.ini, setup.cfg, tox.toml, and pyproject.toml in both of its forms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specbuild.repo.facts import Evidence, TestEnv
from specbuild.repo.readers import ini
from specbuild.repo.readers.factors import conditional, expand_names
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.ini import Ini, Line
from specbuild.repo.readers.requirement import strip_comment
from specbuild.repo.readers.requirements import requirement_of
from specbuild.repo.readers.toml import Table, Toml, list_of, load, strings_of, table_of
from specbuild.repo.readers.tree import Tree

MAX_ENVS = 60
MAX_SUBSTITUTIONS = 10
BASE_NAME = "py"
"""What `tox -e py` runs: the plain [testenv] with the current interpreter."""


def read(tree: Tree, found: Findings) -> None:
    """The plain environment, those of the envlist, and those with a section of their own."""
    for envs in (_from_ini_files(tree), _from_toml_files(tree)):
        for env in envs[:MAX_ENVS]:
            found.test_envs.append(env)
            for dep in env.deps:
                if requirement := requirement_of(dep):
                    found.add_dependency(requirement, f"tox:{env.name}", env.evidence)


def _from_ini_files(tree: Tree) -> list[TestEnv]:
    for file in ("tox.ini", "setup.cfg"):
        config = ini.parse(tree.text(file) or "")
        if file == "setup.cfg":
            config = {re.sub(r"^tox:tox$", "tox", name): section for name, section in config.items()}
        if "tox" in config or any(name.startswith("testenv") for name in config):
            return _IniFile(tree, file, config, 0).envs()
    toml = load(tree, "pyproject.toml")
    legacy = toml.string("tool", "tox", "legacy_tox_ini") if toml else ""
    if toml and legacy:
        start = toml.evidence("tool", "tox", "legacy_tox_ini").line or 1
        return _IniFile(tree, "pyproject.toml", ini.parse(legacy), start).envs()
    return []


@dataclass
class _IniFile:
    tree: Tree
    file: str
    config: Ini
    offset: int

    def envs(self) -> list[TestEnv]:
        core = self.config.get("tox", {})
        lines = core.get("env_list") or core.get("envlist") or []
        names = [BASE_NAME]
        names += expand_names(" ".join(strip_comment(line.text) for line in lines))
        for section in self.config:
            if section.startswith("testenv:"):
                names += expand_names(section.removeprefix("testenv:"))
        unique = list(dict.fromkeys(name for name in names if name))
        return [self._env(name) for name in unique[:MAX_ENVS]]

    def _env(self, name: str) -> TestEnv:
        setenv = self._lines(name, "setenv") or self._lines(name, "set_env")
        pairs = [line.partition("=") for line in setenv]
        return TestEnv(
            tool="tox",
            name=name,
            deps=tuple(filter(None, self._lines(name, "deps"))),
            extras=tuple(e.strip() for line in self._lines(name, "extras") for e in line.split(",") if e.strip()),
            groups=tuple(
                g.strip() for line in self._lines(name, "dependency_groups") for g in line.split(",") if g.strip()
            ),
            commands=tuple(c for key in ("commands_pre", "commands") for c in _continued(self._lines(name, key))),
            env=tuple((key.strip(), value.strip()) for key, _, value in pairs if key.strip()),
            evidence=self._evidence(name),
        )

    def _evidence(self, name: str) -> Evidence:
        """The section's header, found by its text, in whichever file the section stands."""
        wanted = [
            section for section in self.config if section.startswith("testenv:") and name in expand_names(section[8:])
        ]
        headers = {f"[{section}]" for section in wanted} or {"[testenv]"}
        lines = self.tree.lines(self.file)
        numbers = (n for n, line in enumerate(lines, 1) if line.strip() in headers and n >= self.offset)
        return self.tree.evidence(self.file, next(numbers, self.offset or None))

    def _sections(self, name: str) -> list[dict[str, list[Line]]]:
        own = [self.config[s] for s in self.config if s.startswith("testenv:") and name in expand_names(s[8:])]
        return [*own, self.config.get("testenv", {})]

    def _lines(self, name: str, key: str) -> list[str]:
        """The lines of a setting for one environment: its own section first, conditions and references resolved."""
        for section in self._sections(name):
            if key in section:
                return self._resolved([line.text for line in section[key]], name, 0)
        return []

    def _resolved(self, lines: list[str], name: str, depth: int) -> list[str]:
        result: list[str] = []
        for line in lines:
            line = strip_comment(line)
            kept = conditional(line, name) if line else None
            if not kept:
                continue
            reference = re.fullmatch(r"\{\[([^\]]+)\](\w+)\}", kept)
            if reference and depth < MAX_SUBSTITUTIONS:
                target = self.config.get(reference[1], {}).get(reference[2].lower().replace("-", "_"), [])
                result += self._resolved([t.text for t in target], name, depth + 1)
            else:
                result.append(self._substituted(kept, name))
        return result[:500]

    def _substituted(self, text: str, name: str) -> str:
        def section_value(match: re.Match[str]) -> str:
            lines = self.config.get(match[1], {}).get(match[2].lower().replace("-", "_"), [])
            return " ".join(line.text for line in lines)

        for _ in range(MAX_SUBSTITUTIONS):
            changed = re.sub(r"\{\[([^\]]+)\](\w+)\}", section_value, text)
            if changed == text or len(changed) > 10_000:
                break
            text = changed
        return substitute(text, name)


def substitute(text: str, name: str) -> str:
    """tox's substitutions, as far as they do not depend on the machine."""
    fixed = {
        "toxinidir": ".", "tox_root": ".", "envname": name, "env_name": name,
        "envpython": "python", "env_python": "python",
        "/": "/", ":": ":", "envtmpdir": "/tmp", "env_tmp_dir": "/tmp", "toxworkdir": ".tox", "work_dir": ".tox",  # noqa: S108
        "package_root": ".", "posargs": "", "envdir": f".tox/{name}", "env_dir": f".tox/{name}",
    }  # fmt: skip

    def fill(match: re.Match[str]) -> str:
        body = match[1]
        if body in fixed:
            return fixed[body]
        if body.startswith("posargs:"):
            return body.removeprefix("posargs:")
        if environment := re.fullmatch(r"env:(\w+):(.*)", body, re.DOTALL):
            return environment[2]
        return match[0]

    # Innermost first, since defaults may hold substitutions themselves.
    for _ in range(MAX_SUBSTITUTIONS):
        changed = re.sub(r"(?<!\\)\{([^{}]+)\}", fill, text)
        if changed == text:
            break
        text = changed
    return text.strip()


def _command(text: str) -> str:
    """A command without the marks for "failure does not matter" and "inverted"."""
    return re.sub(r"^[-!]\s*(?=\S)", "", text)


def _continued(lines: list[str]) -> list[str]:
    """Commands with their continuation lines joined."""
    result: list[str] = []
    pending = ""
    for line in lines:
        if line.endswith("\\"):
            pending += line[:-1].strip() + " "
        else:
            result.append(_command((pending + line).strip()))
            pending = ""
    return [*result, pending.strip()] if pending.strip() else result


def _from_toml_files(tree: Tree) -> list[TestEnv]:
    for file, base in (("tox.toml", ()), ("pyproject.toml", ("tool", "tox"))):
        toml = load(tree, file)
        if toml is None or not (toml.table(*base, "env_run_base") or toml.table(*base, "env")):
            continue
        own = toml.table(*base, "env")
        listed = [name for item in toml.array(*base, "env_list") for name in _listed(item)]
        names = list(dict.fromkeys([BASE_NAME, *listed, *own]))
        return [_toml_env(toml, base, name) for name in names[:MAX_ENVS]]
    return []


def _listed(item: object) -> list[str]:
    """A name, or the names of a product of factor lists."""
    if isinstance(item, str):
        return [item]
    names = [""]
    for group in list_of(table_of(item).get("product")):
        names = [f"{head}-{tail}" if head else tail for head in names for tail in strings_of(group)][:MAX_ENVS]
    return [name for name in names if name]


def _toml_env(toml: Toml, base: tuple[str, ...], name: str) -> TestEnv:
    own, shared = toml.table(*base, "env", name), toml.table(*base, "env_run_base")

    def setting(key: str) -> object:
        return own.get(key, shared.get(key))

    commands = [*list_of(setting("commands_pre")), *list_of(setting("commands"))]
    where = ("env", name) if own else ("env_run_base",)
    return TestEnv(
        tool="tox",
        name=name,
        deps=tuple(substitute(dep, name) for dep in strings_of(setting("deps"))),
        extras=tuple(strings_of(setting("extras"))),
        groups=tuple(strings_of(setting("dependency_groups"))),
        commands=tuple(filter(None, (substitute(" ".join(_words(command)), name) for command in commands))),
        env=tuple((k, v) for k, v in table_of(setting("set_env")).items() if isinstance(v, str)),
        evidence=toml.evidence(*base, *where),
    )


def _words(command: object) -> list[str]:
    """The words of a command; a positional-arguments table stands for its default."""
    words: list[str] = []
    for word in list_of(command):
        table: Table = table_of(word)
        if isinstance(word, str):
            words.append(word)
        elif table.get("replace") == "posargs":
            words += strings_of(table.get("default"))
    return words
