"""Which requirements a Repo declares: what it needs at run time, and what its tests need, by the strongest evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from specbuild.repo.facts import Dependency, Evidence, Facts, TestEnv
from specbuild.strategies.imported import distribution_of

_TEST_NAME = re.compile(r"(unit-?)?test(s|ing)?")
_TEST_LIKE = re.compile(r"test|pytest|nose")
_RUNNERS = frozenset({"pytest", "nose", "unittest"})
_NOT_TESTS = re.compile(
    r"lint|mypy|typ(e|ing)|doc|style|format|build|release|bench|downstream|integration|fuzz|min|lowest"
)
_DEV_NAME = re.compile(r"dev(el(op(ment)?)?)?(-dependencies)?|all|ci")
_RUNS_TESTS = re.compile(r"testenv|py|py\d+|py\d+[.\w-]*|(unit-?)?tests?(ing|-.*)?|default")
_TOOLING = frozenset(
    ("bandit", "black", "build", "bump2version", "bumpversion", "codespell", "flake8", "isort", "mypy", "nox")
) | {"pre-commit", "pylint", "pyright", "ruff", "tox", "twine"}
"""Tools of a developer that hardly a test suite imports; left out where a group mixes them with what tests need."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Requirements chosen for one purpose."""

    requirements: tuple[str, ...]
    """PEP 508, in the order of the source, no two alike."""
    why: str
    """Where they come from, in words."""
    evidence: tuple[Evidence, ...] = ()
    extras: tuple[str, ...] = ()
    """The project's own extras that were taken, to be asked for when it is installed."""
    declared: bool = True
    """Whether the project says so itself."""


def name_of(requirement: str) -> str:
    """The normalised distribution name of a requirement; empty when it has none."""
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return ""


def released(requirement: str) -> str:
    """The requirement without the address it is fetched from: whatever the index has of that name."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return requirement
    parsed.url = None
    return str(parsed)


def fetched(requirement: str) -> bool:
    """Whether the requirement names an address that it is fetched from."""
    try:
        return Requirement(requirement).url is not None
    except InvalidRequirement:
        return False


def in_tree(requirement: str) -> bool:
    """Whether the requirement is, or may be, a path in the source tree."""
    try:
        url = Requirement(requirement).url
    except InvalidRequirement:
        return True
    return url is not None and ("://" not in url or url.startswith("file:"))


def runtime(facts: Facts) -> Wanted:
    """What the project needs at run time."""
    declared = _of(facts, "")
    if not declared:
        # A setup.py that reads its requirements from a file leaves only the file for a reader to see.
        declared = [d for d in facts.dependencies if d.group in ("file:requirements.txt", "file:requirements.in")]
    return Wanted(_expanded(facts, declared), "declared run-time requirements", _evidence(declared))


def tests(facts: Facts) -> Wanted:
    """What is declared for the tests, by the strongest source that says anything."""
    for found in _sources(facts):
        if found.requirements or found.extras:
            return found
    return Wanted((), "no test requirements are declared", declared=False)


def names(requirements: Iterable[str]) -> frozenset[str]:
    """The normalised distribution names of requirements."""
    return frozenset(map(name_of, requirements)) - {""}


def as_declared(facts: Facts, requirement: str) -> str:
    """The bare name as some group of the project bounds it, for every interpreter; else as it is given."""
    if name_of(requirement) != requirement:
        return requirement
    stated = (d.requirement for d in facts.dependencies if name_of(d.requirement) == requirement)
    return next((text for text in stated if not (fetched(text) or Requirement(text).marker)), requirement)


def by_git(facts: Facts) -> bool:
    """Whether a requirement is fetched by git."""
    return any("git+" in dependency.requirement for dependency in facts.dependencies)


def _sources(facts: Facts) -> Iterator[Wanted]:
    """The places where test requirements stand, strongest first."""
    yield _named(facts, lambda name: _TEST_NAME.fullmatch(name) is not None, "test group")
    yield _named(facts, _is_for_tests, "test group")
    yield _taken(facts, [d for d in facts.dependencies if d.group == "tests"], "tests_require")
    yield from (_from_env(facts, env) for env in facts.test_envs if _RUNS_TESTS.fullmatch(env.name.lower()))
    yield _files(facts, _TEST_LIKE)
    # What supports the users of a test tool is called after it; other projects call their own test requirements so.
    yield _named(facts, lambda name: name in _RUNNERS, "extra")
    yield _named(facts, lambda name: _DEV_NAME.fullmatch(name) is not None, "development group")
    yield _files(facts, re.compile(r"dev|ci"))
    yield _from_ci(facts)


def _named(facts: Facts, wanted: Callable[[str], bool], what: str) -> Wanted:
    chosen = [d for d in facts.dependencies if wanted(_label(d.group, ("extra", "group")))]
    return _taken(facts, chosen, what)


def _is_for_tests(name: str) -> bool:
    return bool(_TEST_LIKE.search(name)) and not _NOT_TESTS.search(name) and name not in _RUNNERS


def _label(group: str, kinds: tuple[str, ...]) -> str:
    kind, _, name = group.partition(":")
    return canonicalize_name(name) if kind in kinds and name else ""


def _files(facts: Facts, pattern: re.Pattern[str]) -> Wanted:
    paths = {d.group.removeprefix("file:") for d in facts.dependencies if d.group.startswith("file:")}
    chosen = {path for path in paths if pattern.search(path.lower()) and not _NOT_TESTS.search(path.lower())}
    # `tests.in` is what people wrote, `tests.txt` what a tool made of it on some day; the day is another strategy's.
    chosen -= {path for path in chosen if path.endswith(".txt") and path.removesuffix(".txt") + ".in" in chosen}
    # Beside a file for tests as such, others are for other ways to run them.
    plain = {path for path in chosen if _TEST_NAME.fullmatch(_purpose(path))}
    taken = [d for d in facts.dependencies if d.group.removeprefix("file:") in (plain or chosen)]
    return _taken(facts, taken, "requirements file")


def _purpose(path: str) -> str:
    """What a requirements file is for by its name, as `test` of `test-requirements.txt` and `requirements/test.in`."""
    stem = path.lower().rpartition("/")[2].rpartition(".")[0]
    return re.sub(r"(python-?)?(requirements?|reqs?)", "", stem).strip("-_.")


def _from_env(facts: Facts, env: TestEnv) -> Wanted:
    """What a tox, nox or hatch environment installs."""
    requirements: list[str] = []
    for line in env.deps:
        text = line.replace("{toxinidir}/", "").replace("{tox_root}/", "").strip()
        file = re.fullmatch(r"(?:-r|--requirement)[ =]?\s*(\S+)", text)
        if file:
            path = file[1].removeprefix("./")
            requirements += [d.requirement for d in facts.dependencies if d.group == f"file:{path}"]
        elif name_of(text):
            requirements.append(text)
    labels = {f"extra:{extra}" for extra in env.extras} | {f"group:{group}" for group in env.groups}
    grouped = [d for d in facts.dependencies if d.group in labels]
    texts = _unique([*requirements, *_expanded(facts, grouped)])
    return Wanted(texts, f"{env.tool} environment {env.name}", (env.evidence,), extras=env.extras)


def _from_ci(facts: Facts) -> Wanted:
    """What CI installs by name before it runs the tests."""
    found: list[str] = []
    evidence: list[Evidence] = []
    for job in facts.ci:
        for fact in job.run if job.tests else ():
            for match in re.finditer(r"\bpip3? install ([^\n;&|]+)", fact.value):
                named = [w.strip("'\"") for w in match[1].split() if not w.startswith(("-", ".", "$"))]
                found += [
                    word for word in named if name_of(word) and name_of(word) not in ("pip", "wheel", "setuptools")
                ]
                evidence.append(fact.evidence)
    return Wanted(_unique(w for w in found if name_of(w) not in _tooling(facts)), "CI installs", tuple(evidence[:3]))


def _taken(facts: Facts, chosen: list[Dependency], what: str) -> Wanted:
    extras = _unique(d.group.removeprefix("extra:") for d in chosen if d.group.startswith("extra:"))
    labels = _unique(d.group for d in chosen)
    why = f"{what} {', '.join(label.partition(':')[2] or label for label in labels)}"
    requirements = tuple(text for text in _expanded(facts, chosen) if name_of(text) not in _tooling(facts))
    return Wanted(requirements, why, _evidence(chosen), extras=extras)


def _tooling(facts: Facts) -> frozenset[str]:
    return _TOOLING - {distribution_of(need.name) for need in facts.test_needs if need.kind == "import"}


def _of(facts: Facts, group: str) -> list[Dependency]:
    return [dependency for dependency in facts.dependencies if dependency.group == group]


def _expanded(facts: Facts, chosen: Iterable[Dependency], seen: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The requirements, with references to the project's own extras (`name[extra]`) replaced by what these hold."""
    own = canonicalize_name(facts.name.value) if facts.name else ""
    texts: list[str] = []
    for dependency in chosen:
        name = name_of(dependency.requirement)
        if not name:
            continue
        if name != own:
            texts.append(dependency.requirement)
            continue
        # A pin of the project itself (as in a frozen list) is dropped with this: the tree is what gets installed.
        extras = {canonicalize_name(extra) for extra in Requirement(dependency.requirement).extras} - seen
        inner = [d for d in facts.dependencies if _label(d.group, ("extra",)) in extras]
        texts += _expanded(facts, inner, seen | extras)
    return _unique(texts)


def _evidence(chosen: Iterable[Dependency]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(dependency.evidence for dependency in chosen))[:4]


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
