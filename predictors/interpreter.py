"""Python: modules and names that are not there, and versions of the interpreter."""

from __future__ import annotations

from specbuild.failures import (
    DriftedDependency,
    DriftedTestTool,
    Failure,
    MissingBuildDependency,
    MissingLocale,
    MissingModule,
    MissingProjectFile,
    MissingTestExtra,
    MissingToolchain,
    ShadowedPackage,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors import drift, stdlib
from specbuild.predictors.phrases import OUTCOME, RAISED
from specbuild.predictors.signature import always, signature

_INSTALLED = ("site-packages", "dist-packages", "/lib/python", "HOME", "unknown location")


_NODES = frozenset({"Package", "Module", "Session", "Function", "Class", "Dir", "FixtureDef", "FixtureRequest"})


def _module(module: str, evidence: str) -> Failure:
    top, _, rest = module.partition(".")
    if below := stdlib.MODULES.get(module) or stdlib.MODULES.get(top):
        return VersionOutOfRange(tool="python", required=f"<{below}", because=module, evidence=evidence)
    if since := _NEWER.get(module):
        return VersionOutOfRange(tool="python", required=f">={since}", because=module, evidence=evidence)
    if module.startswith(("setuptools.", "pip.")):
        return DriftedDependency(module=top, name=module, evidence=evidence)
    if known := drift.MODULES.get(module):
        distribution, below = known
        return DriftedDependency(module=distribution, name=module, below=below, evidence=evidence)
    if rest.rpartition(".")[2].startswith("_"):
        return ShadowedPackage(module=module, evidence=evidence)
    return MissingModule(language="python", module=module, evidence=evidence)


def _name(name: str, module: str, evidence: str, path: str = "") -> Failure | None:
    top = module.partition(".")[0]
    if below := stdlib.NAMES.get((module, name)):
        return VersionOutOfRange(tool="python", required=f"<{below}", because=f"{module}.{name}", evidence=evidence)
    if top in {"pytest", "_pytest"}:
        below = drift.NAMES.get((top, name), "")
        return DriftedTestTool(tool="pytest", name=f"{module}.{name}", below=below, evidence=evidence)
    if stdlib.is_standard(top):
        return VersionOutOfRange(tool="python", because=f"{module}.{name}", evidence=evidence)
    if path and not any(part in path for part in _INSTALLED):
        if name.startswith("_") and not name.startswith("__") and path.endswith("__init__.py"):
            return ShadowedPackage(module=f"{module}.{name}", evidence=evidence)
        return None  # a module of the project itself
    return DriftedDependency(module=module, name=name, below=drift.NAMES.get((top, name), ""), evidence=evidence)


def _attribute(module: str, name: str, evidence: str) -> Failure | None:
    return _name(name, module, evidence)


def _is_node(owner: str) -> bool:
    """Whether a class is of the tree that pytest collects, or of a plugin's addition to it."""
    return owner in _NODES or owner.endswith(("Item", "TestFile"))


def _method(owner: str, name: str, evidence: str) -> Failure | None:
    if below := stdlib.TEST_METHODS.get(name):
        return VersionOutOfRange(tool="python", required=f"<{below}", because=name, evidence=evidence)
    if (since := _NEWER_METHODS.get(name)) and owner in {"str", "bytes", "int", "PosixPath", "Path", "TestCase"}:
        return VersionOutOfRange(tool="python", required=f">={since}", because=f"{owner}.{name}", evidence=evidence)
    if known := drift.METHODS.get((owner, name)):
        module, below = known
        return DriftedDependency(module=module, name=f"{owner}.{name}", below=below, evidence=evidence)
    if _is_node(owner) or name == "from_parent":
        return DriftedTestTool(tool="pytest", name=f"{owner}.{name}", evidence=evidence)
    return drift.backend_method(owner, name, evidence)


def _argument(function: str, name: str, evidence: str) -> Failure:
    module, below = drift.ARGUMENTS.get((function.removesuffix(".__init__"), name), ("", ""))
    weight = Weight.CAUSE if module else Weight.SYMPTOM
    return DriftedDependency(module=module, name=f"{function}({name})", below=below, evidence=evidence, weight=weight)


def _binary_interface(found: str, evidence: str) -> Failure:
    below = str(int(found) + 1)
    return DriftedDependency(module="numpy", name=f"binary interface {found}", below=below, evidence=evidence)


def _namespace(evidence: str, namespace: str = "", name: str = "") -> Failure:
    return MissingModule(language="python", module=f"gi.repository.{namespace or name}", evidence=evidence)


_NO_MODULES = frozenset(
    {"it", "this", "the", "that", "module", "package", "library", "something", "a", "an", "name", "dependency"}
)
_PLUGINS = {"xdist": "pytest-xdist", "anyio": "anyio", "hypothesis": "hypothesis", "syrupy": "syrupy"}


def _sphinx(evidence: str, first: str = "", second: str = "") -> Failure:
    return MissingModule(language="python", module=first or second, evidence=evidence)


def _dialect(first: str, evidence: str, second: str = "") -> Failure:
    return MissingModule(language="python", module=second or first, evidence=evidence)


_NEWER = {
    "tomllib": "3.11",
    "zoneinfo": "3.9",
    "graphlib": "3.9",
    "contextvars": "3.7",
    "dataclasses": "3.7",
    "annotationlib": "3.14",
    "importlib.metadata": "3.8",
    "importlib.resources": "3.7",
    "asyncio": "3.4",
    "compression.zstd": "3.14",
}
"""Modules of the standard library -> the release that brought them (its documentation)."""

_NEWER_METHODS = {
    "removeprefix": "3.9",
    "removesuffix": "3.9",
    "isascii": "3.7",
    "is_relative_to": "3.9",
    "with_stem": "3.9",
    "readlink": "3.9",
    "hardlink_to": "3.10",
    "bit_count": "3.10",
    "enterContext": "3.11",
    "addClassCleanup": "3.8",
}
"""Methods of built-in and standard types -> the release that brought them."""


def _distribution(evidence: str, first: str = "", second: str = "") -> Failure:
    return MissingModule(language="python", module=first or second, evidence=evidence)


def _plugin(module: str, evidence: str) -> Failure:
    """Plugins of pytest are modules that are mostly called like their distributions."""
    top = module.partition(".")[0]
    known = _PLUGINS.get(top, top.replace("_", "-") if top.startswith("pytest_") else "")
    if not known:
        return MissingModule(language="python", module=module, evidence=evidence)
    return MissingTestExtra(distribution=known, name=module, evidence=evidence)


def _told_to_install(told: str, module: str, evidence: str) -> Failure:
    weight = Weight.CAUSE if told in {"ImportError", "ModuleNotFoundError"} else Weight.SYMPTOM
    return MissingModule(language="python", module=module.rstrip("."), evidence=evidence, weight=weight)


def _to_be_installed(told: str, evidence: str, first: str = "", second: str = "", third: str = "") -> Failure | None:
    module = first or second or third
    if module.lower() in _NO_MODULES:
        return None
    weight = Weight.CAUSE if told in {"ImportError", "ModuleNotFoundError"} else Weight.SYMPTOM
    return MissingModule(language="python", module=module, evidence=evidence, weight=weight)


def _lower_module(name: str, evidence: str) -> Failure:
    return MissingModule(language="python", module=name.lower(), evidence=evidence)


def _newest(found: str, required: str, evidence: str) -> Failure:
    return VersionOutOfRange(tool="python", required=f"<={required}", found=found, because="PyO3", evidence=evidence)


def _imported(evidence: str, first: str = "", second: str = "", third: str = "") -> Failure | None:
    module = first or second or third
    if module.lower() in _NO_MODULES or module.endswith(".so"):
        return None
    return MissingModule(language="python", module=module, evidence=evidence)


SIGNATURES = (
    signature(
        (" not available", "introspection typelib not found"),
        OUTCOME + r"(?:ValueError: Namespace (?P<namespace>\w{1,60}) not available"
        r"|ImportError: cannot import name '?(?P<name>\w{1,60})'?, introspection typelib not found)",
        _namespace,
        ("ValueError: Namespace Gtk not available", MissingModule(language="python", module="gi.repository.Gtk")),
        (
            "E   ValueError: Namespace Gst not available for version 1.0",
            MissingModule(language="python", module="gi.repository.Gst"),
        ),
        (
            "ImportError: cannot import name Gtk, introspection typelib not found",
            MissingModule(language="python", module="gi.repository.Gtk"),
        ),
        near=(
            "Namespace Gtk not available on this platform, skipping",
            "    raise ValueError('Namespace %s not available' % namespace)",
        ),
    ),
    signature(
        "No module named ",
        OUTCOME + r"(?:ModuleNotFoundError|ImportError|[\w.]{1,80}(?:CollectError|ImportError|PluginError)): No module "
        r"named ['\"]?(?P<module>[A-Za-z_][\w.]{0,100})",
        _module,
        ("ModuleNotFoundError: No module named 'yaml'", MissingModule(language="python", module="yaml")),
        ("E   ModuleNotFoundError: No module named 'PIL'", MissingModule(language="python", module="PIL")),
        ("ImportError: No module named six.moves", MissingModule(language="python", module="six.moves")),
        (
            "ModuleNotFoundError: No module named 'asyncore'",
            VersionOutOfRange(tool="python", required="<3.12", because="asyncore"),
        ),
        ("E   ModuleNotFoundError: No module named 'lxml._elementpath'", ShadowedPackage(module="lxml._elementpath")),
        near=(
            "E   AssertionError: assert \"No module named 'x'\" in 'ModuleNotFoundError: No module'",
            "If you see ModuleNotFoundError: No module named 'yaml', install PyYAML.",
            "warning: no module named x",
        ),
    ),
    signature(
        "No module named ",
        r"\S{0,200}python[\d.]{0,5}: No module named '?(?P<module>[A-Za-z_][\w.]{0,100})",
        _module,
        ("/opt/venv/bin/python3: No module named nose", MissingModule(language="python", module="nose")),
    ),
    signature(
        "annot import name ",
        OUTCOME + r"(?:\w{1,60}: )?ImportError: cannot import name '(?P<name>\w{1,100})' from (?:partially initialized "
        r"module )?"
        r"'(?P<module>[\w.]{1,100})'(?: \((?P<path>[^()]{1,300}))?",
        _name,
        (
            "ImportError: cannot import name 'json' from 'itsdangerous' (/v/lib/python3.11/site-packages/x.py)",
            DriftedDependency(module="itsdangerous", name="json", below="2.1"),
        ),
        (
            "ImportError: cannot import name 'Iterable' from 'collections' (/usr/lib/python3.11/collections/x.py)",
            VersionOutOfRange(tool="python", required="<3.10", because="collections.Iterable"),
        ),
        near=("ImportError: cannot import name 'VERSION' from 'wand.version' (/w/Wand-0.6/wand/version.py)",),
    ),
    signature(
        "annot import name ",
        OUTCOME + r"ImportError: cannot import name '?(?P<name>\w{1,100})'?$",
        always(DriftedDependency, module="", weight=Weight.SYMPTOM),
        (
            "ImportError: cannot import name izip",
            DriftedDependency(module="", name="izip", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "has no attribute",
        OUTCOME + r"AttributeError: module '(?P<module>[\w.]{1,100})' has no attribute '(?P<name>\w{1,100})'",
        _attribute,
        (
            "AttributeError: module 'numpy' has no attribute 'float'.",
            DriftedDependency(module="numpy", name="float", below="1.24"),
        ),
        (
            "AttributeError: module 'inspect' has no attribute 'getargspec'. Did you mean: 'getargs'?",
            VersionOutOfRange(tool="python", required="<3.11", because="inspect.getargspec"),
        ),
    ),
    signature(
        "has no attribute",
        OUTCOME + r"AttributeError: (?:type object )?"
        r"'(?P<owner>[\w.]{1,100})'(?: object)? has no attribute '(?P<name>\w{1,100})'",
        _method,
        (
            "AttributeError: 'TestIt' object has no attribute 'assertItemsEqual'",
            VersionOutOfRange(tool="python", required="<3.12", because="assertItemsEqual"),
        ),
        (
            "AttributeError: 'DataFrame' object has no attribute 'append'. Did you mean: '_append'?",
            DriftedDependency(module="pandas", name="DataFrame.append", below="2"),
        ),
        (
            "E   AttributeError: type object 'YamlFile' has no attribute 'from_parent'",
            DriftedTestTool(tool="pytest", name="YamlFile.from_parent"),
        ),
        near=("AttributeError: 'NoneType' object has no attribute 'x'",),
    ),
    signature(
        "TypeError: ",
        OUTCOME + r"TypeError: (?P<function>[\w.]{1,100})\(\) got an unexpected keyword argument '(?P<name>\w{1,100})'",
        _argument,
        (
            "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'",
            DriftedDependency(module="httpx", name="Client.__init__(proxies)", below="0.28"),
        ),
        (
            "TypeError: f() got an unexpected keyword argument 'x'",
            DriftedDependency(module="", name="f(x)", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "cannot be run in",
        r"A module that was compiled using NumPy (?P<found>\d{1,2})\.x cannot be run in",
        _binary_interface,
        (
            "A module that was compiled using NumPy 1.x cannot be run in",
            DriftedDependency(module="numpy", name="binary interface 1", below="2"),
        ),
    ),
    signature(
        "ValueError: numpy.dtype",
        OUTCOME + r"ValueError: numpy\.dtype size changed, may indicate binary incompatibility",
        always(DriftedDependency, module="numpy", name="binary interface 1", below="2"),
        (
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header",
            DriftedDependency(module="numpy", name="binary interface 1", below="2"),
        ),
    ),
    signature(
        "PydanticImportError: ",
        OUTCOME + r"(?:pydantic\.errors\.)?PydanticImportError: `(?P<name>[\w.:]{1,100})` has been (?:moved|removed)",
        always(DriftedDependency, module="pydantic", below="2"),
        (
            "pydantic.errors.PydanticImportError: `pydantic:ConstrainedStr` has been moved to the x",
            DriftedDependency(module="pydantic", name="pydantic:ConstrainedStr", below="2"),
        ),
    ),
    signature(
        "indicates that `",
        r"hint: This error likely indicates that `(?P<of>[^`@]{1,80}?)(?: ?@[^`]{1,200})?` depends on "
        r"`(?P<module>[^`]{1,80})`, but doesn't declare it as a build dependency",
        MissingBuildDependency,
        (
            (
                "hint: This error likely indicates that `pyx@1.0` depends on `numpy`, but doesn't declare it as a build"
                " dependency. If"
            ),
            MissingBuildDependency(module="numpy", of="pyx"),
        ),
    ),
    signature(
        "not created successfully",
        r"(?:The virtual environment was not created successfully because )ensurepip is not",
        always(MissingModule, language="python", module="ensurepip"),
        (
            "The virtual environment was not created successfully because ensurepip is not",
            MissingModule(language="python", module="ensurepip"),
        ),
    ),
    signature(
        ("codec can't decode", "codec can't encode"),
        OUTCOME + r"Unicode(?:De|En)codeError: '(?:ascii|latin-1)' codec can't (?:decode byte|encode character)",
        always(MissingLocale, locale="UTF-8"),
        (
            "UnicodeDecodeError: 'ascii' codec can't decode byte 0xe2 in position 5: ordinal not in range(128)",
            MissingLocale(locale="UTF-8"),
        ),
        near=("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",),
    ),
    signature(
        "annot be run on Python ",
        r"(?:SyntaxError|RuntimeError|error): .{0,80}cannot be run on Python (?P<found>[\d.]{1,8}\d)",
        always(VersionOutOfRange, tool="python"),
        (
            "RuntimeError: This release cannot be run on Python 3.13",
            VersionOutOfRange(tool="python", found="3.13"),
        ),
    ),
    signature(
        "Missing parentheses in call to 'print'",
        r"SyntaxError: Missing parentheses in call to 'print'",
        always(VersionOutOfRange, tool="python", required="<3", because="print"),
        (
            "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?",
            VersionOutOfRange(tool="python", required="<3", because="print"),
        ),
    ),
    signature(
        ("distribution was not found", "No package metadata was found", "PackageNotFoundError: "),
        OUTCOME
        + r"(?:pkg_resources\.)?(?:DistributionNotFound: The '(?P<first>[A-Za-z][\w.-]{0,80})[^']{0,60}' distribution"
        r" was not found|(?:importlib[._]metadata\.)?PackageNotFoundError: (?:No package metadata was found for )?"
        r"['\"]?(?P<second>[A-Za-z][\w.-]{0,80})['\"]?$)",
        _distribution,
        (
            "E   pkg_resources.DistributionNotFound: The 'zope.event>=5' distribution was not found and is required",
            MissingModule(language="python", module="zope.event"),
        ),
        (
            "importlib.metadata.PackageNotFoundError: No package metadata was found for black",
            MissingModule(language="python", module="black"),
        ),
        ("importlib_metadata.PackageNotFoundError: tox", MissingModule(language="python", module="tox")),
    ),
    signature(
        ("VersionConflict: ", "ContextualVersionConflict: "),
        OUTCOME + r"(?:pkg_resources\.)?(?:Contextual)?VersionConflict: \(.{1,200}, "
        r"Requirement\.parse\('(?P<requirement>[^']{1,100})'\)",
        always(UnsatisfiableResolution, tool="pkg_resources"),
        (
            "pkg_resources.VersionConflict: (idna 3.4 (/v/lib), Requirement.parse('idna<3'))",
            UnsatisfiableResolution(tool="pkg_resources", requirement="idna<3"),
        ),
    ),
    signature(
        "rror importing plugin ",
        OUTCOME + r"(?:ImportError: )?Error importing plugin \"(?P<module>\w[\w.]{0,80})\": ",
        _plugin,
        (
            "ImportError: Error importing plugin \"xdist.plugin\": No module named 'xdist'",
            MissingTestExtra(distribution="pytest-xdist", name="xdist.plugin"),
        ),
        (
            "ImportError: Error importing plugin \"pytest_cov\": No module named 'pytest_cov'",
            MissingTestExtra(distribution="pytest-cov", name="pytest_cov"),
        ),
    ),
    signature(
        ("issing optional dependency ", "issing dependency "),
        OUTCOME + r"(?:[\w.]{1,100}: )(?:Unable to import required dependencies.{0,40}|Missing (?:optional |required "
        r")?dependency"
        r" ['\"`](?P<module>[A-Za-z][\w.-]{0,60})['\"`])",
        always(MissingModule, language="python"),
        (
            "ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.",
            MissingModule(language="python", module="openpyxl"),
        ),
    ),
    signature(
        ("ImportError: ", "ModuleNotFoundError: "),
        OUTCOME + r"(?:ImportError|ModuleNotFoundError): (?:(?:[\w ,]{0,60}, but )?(?:[Tt]he |[Pp]ackage |[Mm]odule "
        r"){0,2}['\"`]?(?P<first>[A-Za-z]\w[\w.-]{0,40}?)['\"`]? "
        r"(?:package |module |library )?(?:is not installed|is required|must be installed|needs to be installed"
        r"|not installed"
        r"|not found|is missing|could not be imported)|(?:[Pp]lease|[Yy]ou (?:must|need to)|[Mm]ust) install "
        r"(?:the )?['\"`]?(?P<second>[A-Za-z]\w[\w.-]{0,40}?)['\"`]?(?: package| library| module|[.,; ]|$)"
        r"|.{1,80} requires (?:the )?['\"`]?(?P<third>[A-Za-z]\w[\w.-]{0,40}?)['\"`]?(?: package| library| "
        r"module)?(?: to be installed|\.?$))",
        _imported,
        ("ImportError: lxml is required for this", MissingModule(language="python", module="lxml")),
        ("E   ImportError: Please install pandas to use it", MissingModule(language="python", module="pandas")),
        ("ImportError: read_html requires the html5lib package.", MissingModule(language="python", module="html5lib")),
        near=("ImportError: the module is required", "ImportError: Something is missing"),
    ),
    signature(
        "pip install ",
        OUTCOME + r"(?P<told>ImportError|ModuleNotFoundError|[\w.]{0,100}?(?:Error|Exception|NotInstalled"
        r"|Missing\w{0,20})): .{0,200}?"
        r"\bpip3? install (?:-U |--upgrade )?[\"'`]?(?P<module>[A-Za-z][\w.-]{0,60})",
        _told_to_install,
        (
            "ImportError: Plotting wants more. Install it with `pip install matplotlib`.",
            MissingModule(language="python", module="matplotlib"),
        ),
        (
            "RuntimeError: To use this, pip install h2",
            MissingModule(language="python", module="h2", weight=Weight.SYMPTOM),
        ),
        near=("ImportError: cannot load the module; try pip install .",),
    ),
    signature(
        "an't open file '",
        r"(?:\S{0,200})python[\d.]{0,5}: can't open file '(?P<path>[^']{1,200})': \[Errno 2\]",
        always(MissingProjectFile, tool="python"),
        (
            "python: can't open file 'manage.py': [Errno 2] No such file or directory",
            MissingProjectFile(path="manage.py", tool="python"),
        ),
    ),
    signature(
        "TypeError: unsupported operand type(s) for |",
        OUTCOME
        + r"TypeError: unsupported operand type\(s\) for \|: '(?:type|NoneType|types\.GenericAlias|_\w{1,30}|ABCMeta|"
        r"EnumMeta|ModelMetaclass)' and '(?:type|NoneType|types\.GenericAlias|_\w{1,30}|ABCMeta)'",
        always(VersionOutOfRange, tool="python", required=">=3.10", because="X | Y in annotations"),
        (
            "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'",
            VersionOutOfRange(tool="python", required=">=3.10", because="X | Y in annotations"),
        ),
        near=("TypeError: unsupported operand type(s) for |: 'int' and 'str'",),
    ),
    signature(
        "object is not subscriptable",
        OUTCOME + r"TypeError: '(?:type|ABCMeta|EnumMeta|EnumType|function|builtin_function_or_method|_GenericAlias)' "
        r"object is not subscriptable",
        always(VersionOutOfRange, tool="python", required=">=3.9", because="list[X]", weight=Weight.SYMPTOM),
        (
            "TypeError: 'type' object is not subscriptable",
            VersionOutOfRange(tool="python", required=">=3.9", because="list[X]", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "no current event loop in thread ",
        OUTCOME + r"RuntimeError: There is no current event loop in thread 'MainThread'",
        always(VersionOutOfRange, tool="python", required="<3.14", because="asyncio.get_event_loop"),
        (
            "E   RuntimeError: There is no current event loop in thread 'MainThread'.",
            VersionOutOfRange(tool="python", required="<3.14", because="asyncio.get_event_loop"),
        ),
    ),
    signature(
        (
            "rror: Java gateway process",
            "] Java gateway process",
            "JVMNotFoundException: ",
            "No JVM shared library file",
            "nable to locate a Java Runtime",
            "o JVM could be found",
        ),
        RAISED
        + r"(?:\[\w{1,40}\] )?(?:Java gateway process exited before|No JVM shared library file|Unable to locate a "
        r"Java Runtime|No JVM could be found)",
        always(MissingToolchain, language="java"),
        (
            "E   OSError: Java gateway process exited before sending its port number",
            MissingToolchain(language="java"),
        ),
        (
            "jpype._jvmfinder.JVMNotFoundException: No JVM shared library file (libjvm.so) found. Try setting up",
            MissingToolchain(language="java"),
        ),
    ),
    signature(
        ("to be installed", "must be installed", "needs to be installed", "lease install "),
        OUTCOME + r"(?P<told>[\w.]{0,100}?(?:Error|Exception|NotInstalled|Missing\w{0,20})): (?:.{0,160}?\brequires? "
        r"(?:the )?[\"'`]?(?P<first>[A-Za-z]\w[\w.-]{0,40}?)[\"'`]?"
        r"(?: package| library| module)? to be installed|(?:[Tt]he )?[\"'`](?P<second>[A-Za-z]\w[\w.-]{0,40}?)["
        r"\"'`] (?:package |library |module )?(?:must|needs to|has to) be installed"
        r"|.{0,160}?\b[Pp]lease install (?:the )?[\"'`](?P<third>[A-Za-z]\w[\w.-]{0,40}?)[\"'`](?: package| "
        r"library| module)?(?:[.,]| |$))",
        _to_be_installed,
        (
            'E   RuntimeError: Form data requires "python-multipart" to be installed.',
            MissingModule(language="python", module="python-multipart", weight=Weight.SYMPTOM),
        ),
        (
            "AssertionError: `itsdangerous` must be installed to use SessionMiddleware",
            MissingModule(language="python", module="itsdangerous", weight=Weight.SYMPTOM),
        ),
        (
            "ValueError: No data. Please install the 'datasets' package.",
            MissingModule(language="python", module="datasets", weight=Weight.SYMPTOM),
        ),
        near=("RuntimeError: the package to be installed",),
    ),
    signature(
        "ouldn't import ",
        OUTCOME + r"ImportError: Couldn't import (?P<name>[A-Z]\w{1,40})\. Are you sure it's installed",
        _lower_module,
        (
            "ImportError: Couldn't import Django. Are you sure it's installed and available on your PYTHONPATH",
            MissingModule(language="python", module="django"),
        ),
    ),
    signature(
        "maximum supported version",
        r"(?:error: )?the configured Python interpreter version \((?P<found>[\d.]{1,8})\) is newer than PyO3's "
        r"maximum supported version \((?P<required>[\d.]{1,8})\)",
        _newest,
        (
            (
                "error: the configured Python interpreter version (3.13) is newer than PyO3's maximum supported "
                "version (3.12)"
            ),
            VersionOutOfRange(tool="python", required="<=3.12", found="3.13", because="PyO3"),
        ),
    ),
    signature(
        ("module compiled against A", "multiarray failed to import"),
        OUTCOME
        + r"(?:RuntimeError: module compiled against A[BP]I version|(?:ImportError: )?numpy\.core\.(?:multiarray"
        r"|umath) failed to import)",
        always(DriftedDependency, module="numpy", name="binary interface 1", below="2"),
        (
            "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000",
            DriftedDependency(module="numpy", name="binary interface 1", below="2"),
        ),
    ),
    signature(
        ("not import extension ", "no theme named "),
        RAISED + r"(?:Could not import extension (?P<first>[A-Za-z][\w.]{0,80}) \(exception: No module named|no theme "
        r"named '(?P<second>\w{1,60})' found)",
        _sphinx,
        (
            (
                "sphinx.errors.ExtensionError: Could not import extension sphinx_x.y (exception: No module named "
                "'sphinx_x')"
            ),
            MissingModule(language="python", module="sphinx_x.y"),
        ),
        (
            "sphinx.errors.ThemeError: no theme named 'furo' found (missing theme.toml?)",
            MissingModule(language="python", module="furo"),
        ),
    ),
    signature(
        "an't load plugin: sqlalchemy.dialects",
        OUTCOME
        + r"(?:sqlalchemy\.exc\.)?NoSuchModuleError: Can't load plugin: sqlalchemy\.dialects:(?P<first>[\w]{1,40})"
        r"(?:\.(?P<second>\w{1,40}))?",
        _dialect,
        (
            "sqlalchemy.exc.NoSuchModuleError: Can't load plugin: sqlalchemy.dialects:postgresql.asyncpg",
            MissingModule(language="python", module="asyncpg"),
        ),
    ),
)
"""What the interpreter raises."""
