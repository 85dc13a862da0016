"""What the readers have found so far; becomes Facts at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from specbuild.repo.facts import (
    CiJob,
    Dependency,
    DockerImage,
    Evidence,
    Extension,
    Fact,
    Facts,
    Lock,
    TestEnv,
    TestLayout,
    TestNeed,
)
from specbuild.repo.readers.requirement import is_pinned

MAX_DEPENDENCIES = 5_000


@dataclass
class Findings:
    """Lists that readers add to. Where one value is wanted, the first reader that offers one wins."""

    languages: list[Fact[str]] = field(default_factory=list[Fact[str]])
    name: Fact[str] | None = None
    version: Fact[str] | None = None
    build_backend: Fact[str] | None = None
    build_requires: list[Fact[str]] = field(default_factory=list[Fact[str]])
    requires_python: Fact[str] | None = None
    classifier_pythons: list[Fact[str]] = field(default_factory=list[Fact[str]])
    dependencies: list[Dependency] = field(default_factory=list[Dependency])
    locks: list[Lock] = field(default_factory=list[Lock])
    ci: list[CiJob] = field(default_factory=list[CiJob])
    test_envs: list[TestEnv] = field(default_factory=list[TestEnv])
    make_targets: list[Fact[str]] = field(default_factory=list[Fact[str]])
    docker: list[DockerImage] = field(default_factory=list[DockerImage])
    readme_commands: list[Fact[str]] = field(default_factory=list[Fact[str]])
    extensions: list[Extension] = field(default_factory=list[Extension])
    tests: list[TestLayout] = field(default_factory=list[TestLayout])
    test_needs: list[TestNeed] = field(default_factory=list[TestNeed])
    packages: list[Fact[str]] = field(default_factory=list[Fact[str]])
    revision_date: Fact[datetime] | None = None
    scm_version: Fact[str] | None = None
    has_tags: bool = False
    seen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Requirement and group of every dependency so far."""

    def offer_name(self, value: str, evidence: Evidence) -> None:
        if self.name is None and value.strip():
            self.name = Fact(value=value.strip(), evidence=evidence)

    def offer_version(self, value: str, evidence: Evidence) -> None:
        if self.version is None and value.strip():
            self.version = Fact(value=value.strip(), evidence=evidence)

    def offer_backend(self, value: str, evidence: Evidence) -> None:
        if self.build_backend is None and value.strip():
            self.build_backend = Fact(value=value.strip(), evidence=evidence)

    def offer_requires_python(self, value: str, evidence: Evidence) -> None:
        if self.requires_python is None and value.strip():
            self.requires_python = Fact(value=value.strip(), evidence=evidence)

    def offer_scm(self, tool: str, evidence: Evidence) -> None:
        if self.scm_version is None:
            self.scm_version = Fact(value=tool, evidence=evidence)

    def add_build_requirement(self, requirement: str, evidence: Evidence) -> None:
        known = {fact.value for fact in self.build_requires}
        if requirement.strip() and requirement.strip() not in known:
            self.build_requires.append(Fact(value=requirement.strip(), evidence=evidence))

    def add_dependency(self, requirement: str, group: str, evidence: Evidence) -> None:
        """Add a declared requirement, once a group."""
        requirement = " ".join(requirement.split())
        if not requirement or (requirement, group) in self.seen or len(self.dependencies) >= MAX_DEPENDENCIES:
            return
        self.seen.add((requirement, group))
        self.dependencies.append(
            Dependency(requirement=requirement, group=group, pinned=is_pinned(requirement), evidence=evidence)
        )

    def add_classifier(self, classifier: str, evidence: Evidence) -> None:
        """Add the minor version that a trove classifier names, if it names one."""
        head, _, version = classifier.rpartition("::")
        version = version.strip()
        known = {fact.value for fact in self.classifier_pythons}
        numbers = version.split(".")
        is_minor = len(numbers) == 2 and all(number.isdigit() for number in numbers)
        if head.strip() == "Programming Language :: Python" and is_minor and version not in known:
            self.classifier_pythons.append(Fact(value=version, evidence=evidence))

    def add_package(self, name: str, evidence: Evidence) -> None:
        """Add an import package of the project, by its top-level name."""
        top = name.strip().split(".")[0]
        if top.isidentifier() and top not in {fact.value for fact in self.packages}:
            self.packages.append(Fact(value=top, evidence=evidence))

    def add_extension(self, language: str, name: str, evidence: Evidence, *, optional: bool = False) -> None:
        if any((known.language, known.name) == (language, name) for known in self.extensions):
            return
        self.extensions.append(Extension(language=language, name=name, optional=optional, evidence=evidence))

    def has_runtime_dependencies(self) -> bool:
        """Whether any reader has read run-time requirements or extras of the project."""
        return any(d.group == "" or d.group.startswith("extra:") for d in self.dependencies)

    def facts(self, warnings: list[Fact[str]]) -> Facts:
        """All of it, frozen."""
        return Facts(
            languages=tuple(self.languages),
            name=self.name,
            version=self.version,
            build_backend=self.build_backend,
            build_requires=tuple(self.build_requires),
            requires_python=self.requires_python,
            classifier_pythons=tuple(self.classifier_pythons),
            dependencies=tuple(self.dependencies),
            locks=tuple(self.locks),
            ci=tuple(self.ci),
            test_envs=tuple(self.test_envs),
            make_targets=tuple(self.make_targets),
            docker=tuple(self.docker),
            readme_commands=tuple(self.readme_commands),
            extensions=tuple(self.extensions),
            tests=tuple(self.tests),
            test_needs=tuple(self.test_needs),
            packages=tuple(self.packages),
            revision_date=self.revision_date,
            scm_version=self.scm_version,
            has_tags=self.has_tags,
            warnings=tuple(warnings),
        )
