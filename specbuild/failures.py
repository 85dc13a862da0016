"""Failures: typed diagnoses of what went wrong, each with the line of output that tells of it.

One frozen type a kind. Two failures are the same diagnosis if their `key` is: evidence, weight and what was
being built are no part of it.
The kinds whose `infrastructure` is true say nothing about a repository: the network, a registry, the machine or its
limits failed. All others are curable by an edit of a recipe, or are a property of the source.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from specbuild.model import Frozen


class Weight(StrEnum):
    """How much a line of output says about why its step failed."""

    CAUSE = "cause"
    """The line names what is wrong."""
    SYMPTOM = "symptom"
    """Something more telling is usually near; of use when nothing else was found."""
    WARNING = "warning"
    """The tool went on after it; often harmless, at times the first sign of what comes."""


_ABOUT = {"evidence", "weight", "building"}


class _Failure(Frozen):
    infrastructure: ClassVar[bool] = False
    words: ClassVar[str]
    """A sentence about it, with the names of fields in braces."""

    evidence: str = ""
    """The line that tells of it, without colours, at most `predictors.text.EVIDENCE` characters."""
    weight: Weight = Weight.CAUSE
    building: str = ""
    """The distribution whose build failed, where that is known: its needs are looked up by it."""

    @property
    def key(self) -> str:
        """Names the diagnosis: canonical JSON of the kind and its payload."""
        return json.dumps(self.model_dump(mode="json", exclude=_ABOUT), sort_keys=True)

    def __str__(self) -> str:
        # A field that nothing was read of leaves no gap.
        return " ".join(self.words.format_map(dict(self)).split()).rstrip(": ")


# What is not there


class MissingHeader(_Failure):
    """A C or C++ header was included that no package on the system owns."""

    words = "the header {header} is missing"
    kind: Literal["missing-header"] = "missing-header"
    header: str
    """As included: `leveldb/db.h`."""


class MissingLibrary(_Failure):
    """A shared library was not found."""

    words = "the shared library {library} is missing at {when} time"
    kind: Literal["missing-library"] = "missing-library"
    library: str
    """`pq` for `-lpq`; a file name such as `libGL.so.1` where the loader named one; else the bare name."""
    when: Literal["link", "load"]
    """`link` needs the development package, `load` the run-time one."""


class MissingPkgConfig(_Failure):
    """pkg-config knows no such module."""

    words = "the pkg-config module {module} is missing {requirement}"
    kind: Literal["missing-pkg-config"] = "missing-pkg-config"
    module: str
    """The name of its `.pc` file; empty where the tool did not say."""
    requirement: str = ""
    """`>= 2.56`, where one was given."""
    alternatives: tuple[str, ...] = ()
    """Other modules of which one would do."""


class MissingConfigTool(_Failure):
    """A program that prints the compiler flags of a library."""

    words = "{tool} is missing, which comes with the development files of its library"
    kind: Literal["missing-config-tool"] = "missing-config-tool"
    tool: str


class MissingCommand(_Failure):
    """A program is not on the PATH."""

    words = "the program {command} is missing"
    kind: Literal["missing-command"] = "missing-command"
    command: str


class MissingToolchain(_Failure):
    """No compiler, or no toolchain at all, of a language."""

    words = "there is no toolchain for {language} {program}"
    kind: Literal["missing-toolchain"] = "missing-toolchain"
    language: Literal["c", "c++", "fortran", "rust", "go", "java", "node"]
    program: str = ""
    """The program that was looked for, where one was."""


class MissingCMakePackage(_Failure):
    """`find_package` found neither a module nor a configuration."""

    words = "CMake finds no package {package}"
    kind: Literal["missing-cmake-package"] = "missing-cmake-package"
    package: str


class MissingMacro(_Failure):
    """An m4 macro that autoconf knows only with another package installed."""

    words = "autoconf does not know the macro {macro}"
    kind: Literal["missing-macro"] = "missing-macro"
    macro: str


class MissingDevelopmentFiles(_Failure):
    """Headers and library of an upstream project, which the message calls by the project's name alone."""

    words = "the development files of {name} are missing"
    kind: Literal["missing-development-files"] = "missing-development-files"
    name: str


class MissingModule(_Failure):
    """A module of an interpreter cannot be loaded."""

    words = "the {language} module {module} is missing"
    kind: Literal["missing-module"] = "missing-module"
    language: Literal["python", "node", "ruby", "php", "perl"]
    module: str
    """As imported or required; for PHP the name of the extension."""
    alternatives: tuple[str, ...] = ()
    """Others of which one would do."""


class MissingBuildDependency(_Failure):
    """A distribution needs a module for its own build that it does not declare."""

    words = "{of} needs {module} for its build and does not declare it"
    kind: Literal["missing-build-dependency"] = "missing-build-dependency"
    module: str
    of: str = ""


class MissingTestExtra(_Failure):
    """A plugin of the test runner, or a distribution that only the tests need."""

    words = "the tests need {distribution} for {name}"
    kind: Literal["missing-test-extra"] = "missing-test-extra"
    distribution: str
    """Empty where only `name` is known."""
    name: str = ""
    """The option, fixture or setting that gave it away."""


class MissingData(_Failure):
    """A file that programs expect to find."""

    words = "the file {path} is missing"
    kind: Literal["missing-data"] = "missing-data"
    path: str


class MissingProjectFile(_Failure):
    """A file that a tool expects in the source tree: it was run elsewhere, or the file is not in this release."""

    words = "{tool} finds no {path} in the source tree"
    kind: Literal["missing-project-file"] = "missing-project-file"
    path: str
    tool: str


class MissingLocale(_Failure):
    """A locale that was not generated, or none that can encode what is read."""

    words = "a locale is missing: {locale}"
    kind: Literal["missing-locale"] = "missing-locale"
    locale: str = ""
    """Empty where the tool did not name it; `UTF-8` where any of that encoding will do."""


class MissingTimezone(_Failure):
    """No data of time zones, or an old name that the data no longer have."""

    words = "there is no time zone {zone}"
    kind: Literal["missing-timezone"] = "missing-timezone"
    zone: str


class MissingBrowser(_Failure):
    """Tests drive a browser that is not installed."""

    words = "the browser {browser} is missing"
    kind: Literal["missing-browser"] = "missing-browser"
    browser: str


class NoPrebuiltBinary(_Failure):
    """A package has no binary for this platform and will be compiled."""

    words = "{package} will be compiled, as it has no binary for this platform"
    kind: Literal["no-prebuilt-binary"] = "no-prebuilt-binary"
    package: str = ""
    target: str = ""


# What is of the wrong version


class VersionOutOfRange(_Failure):
    """An interpreter, a toolchain or a build tool is too old or too new."""

    words = "{tool} {found} does not fit: {required} {because}"
    kind: Literal["version-out-of-range"] = "version-out-of-range"
    tool: str
    """`python`, `node`, `ruby`, `php`, `rust`, `go`, `java`, `gradle`, `cmake`, `ninja`, `pytest`, …"""
    required: str = ""
    """In the words of the tool: a specifier, a version, or nothing."""
    found: str = ""
    because: str = ""
    """What asks for it: a distribution, or a name that other versions lack."""


class UnsatisfiableResolution(_Failure):
    """A resolver found no set of versions."""

    words = "{tool} finds no set of versions: {requirement}"
    kind: Literal["unsatisfiable-resolution"] = "unsatisfiable-resolution"
    tool: str
    requirement: str = ""
    """The requirement that failed, where one was named."""


class DriftedDependency(_Failure):
    """A newer release of a dependency removed what the source uses."""

    words = "{module} has no {name} in the installed release {below}"
    kind: Literal["drifted-dependency"] = "drifted-dependency"
    module: str
    """The import name; empty where the message has only a class."""
    name: str
    below: str = ""
    """The first release without it, where that is known."""


class DriftedBackend(_Failure):
    """A build backend, or what it builds with, is newer than the source can do with."""

    words = "{backend} no longer has {name} {below}"
    kind: Literal["drifted-backend"] = "drifted-backend"
    backend: str
    name: str
    below: str = ""


class DriftedTestTool(_Failure):
    """The test runner is newer than the suite can do with."""

    words = "{tool} is too new for the suite: {name} {below}"
    kind: Literal["drifted-test-tool"] = "drifted-test-tool"
    tool: str
    name: str
    below: str = ""


class UnfitCompiler(_Failure):
    """A compiler that is too old or too new for the source, or works to another standard."""

    words = "the compiler {compiler} is {direction} for {standard}"
    kind: Literal["unfit-compiler"] = "unfit-compiler"
    compiler: str
    direction: Literal["too-old", "too-new"]
    standard: str
    """The standard, option or construct that it does not take."""


class BinaryTooNew(_Failure):
    """A prebuilt binary wants a newer system library than this base has."""

    words = "a prebuilt binary needs {symbol}, which is newer than the base"
    kind: Literal["binary-too-new"] = "binary-too-new"
    symbol: str
    """A version of symbols: `GLIBC_2.38`."""


class WrongArchitecture(_Failure):
    """A binary or a source is for another processor or system."""

    words = "{subject} is for another platform"
    kind: Literal["wrong-architecture"] = "wrong-architecture"
    subject: str


# What is wrong with the project as it is used


class UnfitLock(_Failure):
    """A lock file that cannot be used as it was asked for."""

    words = "the lock file of {tool} is {problem}"
    kind: Literal["unfit-lock"] = "unfit-lock"
    tool: str
    problem: Literal["stale", "missing", "incomplete", "unreadable"]


class IntegrityMismatch(_Failure):
    """What was downloaded is not what was locked. Not to be ignored."""

    words = "{tool} got other content than was locked {subject}"
    kind: Literal["integrity-mismatch"] = "integrity-mismatch"
    tool: str
    subject: str = ""


class ArchiveRefused(_Failure):
    """An installer does not take an archive that others take."""

    words = "{tool} does not take {archive}"
    kind: Literal["archive-refused"] = "archive-refused"
    tool: str
    archive: str


class NotInstallable(_Failure):
    """The tree is no package of the tool that was asked to install or build it."""

    words = "{tool} cannot install the tree: {problem}"
    kind: Literal["not-installable"] = "not-installable"
    tool: str
    problem: Literal["no-manifest", "several-packages", "no-main-module", "no-script"]


class ManagedInterpreter(_Failure):
    """The interpreter belongs to the distribution and takes no packages."""

    words = "the interpreter is managed by the distribution: a virtual environment is needed"
    kind: Literal["managed-interpreter"] = "managed-interpreter"


class NotBuilt(_Failure):
    """A file that a build step of the project makes is not there yet."""

    words = "{path} is not there: a build step comes first"
    kind: Literal["not-built"] = "not-built"
    path: str


class DependenciesNotInstalled(_Failure):
    """The dependencies were not installed before the project was used."""

    words = "the dependencies of {tool} are not installed"
    kind: Literal["dependencies-not-installed"] = "dependencies-not-installed"
    tool: str


class ShadowedPackage(_Failure):
    """The source package hides the built one, so that its compiled part is missing."""

    words = "{module} is compiled and missing: the source tree hides the installed package, or it was built without"
    kind: Literal["shadowed-package"] = "shadowed-package"
    module: str


class TestCollision(_Failure):
    """Two test modules of one name, or compiled leftovers of another place."""

    words = "two test modules are called {module}"
    kind: Literal["test-collision"] = "test-collision"
    module: str


class HollowPass(_Failure):
    """Nothing was tested, whatever the exit status says."""

    words = "nothing was tested: {what}"
    kind: Literal["hollow-pass"] = "hollow-pass"
    what: str


class StageFailed(_Failure):
    """A tool says only that a stage failed; what failed is told elsewhere, if at all."""

    words = "{stage} failed"
    kind: Literal["stage-failed"] = "stage-failed"
    stage: str


class CompilerFailed(_Failure):
    """A build tool says only that the compiler failed; old ones hide that there is none."""

    words = "the compiler {compiler} failed, or is missing"
    kind: Literal["compiler-failed"] = "compiler-failed"
    compiler: str


# What the surroundings lack


class ServiceNeeded(_Failure):
    """A server does not answer."""

    words = "the service {service} does not answer {address}"
    kind: Literal["service-needed"] = "service-needed"
    service: str
    """`postgresql`, `mysql`, `redis`, `ldap`, `kdc`, `display`, `dbus`, …; empty where only the address is known."""
    address: str = ""
    """`host:port` or the path of a socket."""


class ServiceUnprepared(_Failure):
    """A server answers, and lacks what the client asks it for."""

    words = "{service} has no {lacks} {name}"
    kind: Literal["service-unprepared"] = "service-unprepared"
    service: str
    """As in `ServiceNeeded`."""
    lacks: Literal["database", "login", "extension", "default database"]
    """`login`: a user that is not there, or one that is not believed. `default database`: the client selects none."""
    name: str = ""
    """Empty of a default database."""
    address: str = ""
    """Of the server, where the client said it: `host:port` or the path of a socket."""


class SettingNeeded(_Failure):
    """An environment variable must be set."""

    words = "the variable {variable} must be set"
    kind: Literal["setting-needed"] = "setting-needed"
    variable: str


class VersionControlNeeded(_Failure):
    """git is asked for what the tree does not have."""

    words = "version control: {need} needed {by}"
    kind: Literal["version-control-needed"] = "version-control-needed"
    need: Literal["repository", "tags", "ownership", "file-protocol", "identity"]
    by: str = ""
    """The tool that asks, where it is not git itself."""


class PrivilegeNeeded(_Failure):
    """The command wants to be run as root, or refuses to be."""

    words = "the command wants to be run by: {user}"
    kind: Literal["privilege-needed"] = "privilege-needed"
    user: Literal["root", "ordinary"]


class PermissionRefused(_Failure):
    """A file may not be read, written or run."""

    words = "no permission for {path}"
    kind: Literal["permission-refused"] = "permission-refused"
    path: str


class DeadUrl(_Failure):
    """A server answers that it does not have what the source asks for."""

    words = "{url} is gone ({status})"
    kind: Literal["dead-url"] = "dead-url"
    url: str
    status: str = ""


class TimedOut(_Failure):
    """A limit of time ended the command or a test."""

    words = "the time limit was reached {seconds}"
    kind: Literal["timed-out"] = "timed-out"
    seconds: str = ""


class Hung(_Failure):
    """The command wrote nothing for very long; made by whoever runs it, not from its output."""

    words = "no output for {seconds} seconds"
    kind: Literal["hung"] = "hung"
    seconds: float


# Infrastructure: never counts against a repository


class _Infrastructure(_Failure):
    infrastructure: ClassVar[bool] = True


class NetworkTrouble(_Infrastructure):
    """A host was not reached."""

    words = "the network failed {host} {subject}"
    kind: Literal["network-trouble"] = "network-trouble"
    host: str = ""
    subject: str = ""
    """What was to be fetched, where it was named."""


class RegistryTrouble(_Infrastructure):
    """A registry answers with an error of its own, or refuses for now."""

    words = "a registry failed ({status}) {host}"
    kind: Literal["registry-trouble"] = "registry-trouble"
    status: str
    host: str = ""


class UnreachableSource(_Infrastructure):
    """Something that is fetched from its origin rather than from a registry."""

    words = "the {role} {url} cannot be fetched"
    kind: Literal["unreachable-source"] = "unreachable-source"
    url: str
    role: Literal["dependency", "submodule", "fetched-content"]


class CertificateTrouble(_Infrastructure):
    """A certificate is not trusted: an authority is missing, or the clock is wrong."""

    words = "a certificate is not trusted {why}"
    kind: Literal["certificate-trouble"] = "certificate-trouble"
    why: str = ""


class DiskFull(_Infrastructure):
    """No space is left, or a quota is used up."""

    words = "the disk is full {path}"
    kind: Literal["disk-full"] = "disk-full"
    path: str = ""


class OutOfMemory(_Infrastructure):
    """Memory ran out."""

    words = "memory ran out in {program}"
    kind: Literal["out-of-memory"] = "out-of-memory"
    program: str = ""


class Killed(_Infrastructure):
    """A process was ended by a signal from outside."""

    words = "killed by a signal {signal} {program}"
    kind: Literal["killed"] = "killed"
    program: str = ""
    signal: str = ""


Infrastructure = (
    NetworkTrouble | RegistryTrouble | UnreachableSource | CertificateTrouble | DiskFull | OutOfMemory | Killed
)
"""The branch that never counts against a repository."""

Failure = Annotated[
    MissingHeader
    | MissingLibrary
    | MissingPkgConfig
    | MissingConfigTool
    | MissingCommand
    | MissingToolchain
    | MissingCMakePackage
    | MissingMacro
    | MissingDevelopmentFiles
    | MissingModule
    | MissingBuildDependency
    | MissingTestExtra
    | MissingData
    | MissingProjectFile
    | MissingLocale
    | MissingTimezone
    | MissingBrowser
    | NoPrebuiltBinary
    | VersionOutOfRange
    | UnsatisfiableResolution
    | DriftedDependency
    | DriftedBackend
    | DriftedTestTool
    | UnfitCompiler
    | BinaryTooNew
    | WrongArchitecture
    | UnfitLock
    | IntegrityMismatch
    | ArchiveRefused
    | NotInstallable
    | ManagedInterpreter
    | NotBuilt
    | DependenciesNotInstalled
    | ShadowedPackage
    | TestCollision
    | HollowPass
    | StageFailed
    | CompilerFailed
    | ServiceNeeded
    | ServiceUnprepared
    | SettingNeeded
    | VersionControlNeeded
    | PrivilegeNeeded
    | PermissionRefused
    | DeadUrl
    | TimedOut
    | Hung
    | Infrastructure,
    Field(discriminator="kind"),
]
"""Any of them, told apart by `kind`."""

FAILURE: TypeAdapter[Failure] = TypeAdapter(Failure)
"""Reads and writes any of them as JSON."""
