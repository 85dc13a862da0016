"""Ruby, PHP and Perl."""

from __future__ import annotations

import re

from specbuild.failures import (
    DependenciesNotInstalled,
    Failure,
    MissingLibrary,
    MissingModule,
    MissingProjectFile,
    MissingToolchain,
    NotInstallable,
    StageFailed,
    UnfitLock,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.phrases import LED
from specbuild.predictors.signature import always, signature

_CLASSES = {
    "DOMDocument": "dom",
    "DOMXPath": "dom",
    "SimpleXMLElement": "simplexml",
    "XMLReader": "xmlreader",
    "XMLWriter": "xmlwriter",
    "XSLTProcessor": "xsl",
    "PDO": "pdo",
    "ZipArchive": "zip",
    "Collator": "intl",
    "NumberFormatter": "intl",
    "IntlDateFormatter": "intl",
    "Normalizer": "intl",
    "Transliterator": "intl",
    "mysqli": "mysqli",
    "SQLite3": "sqlite3",
    "SoapClient": "soap",
    "GMP": "gmp",
    "Imagick": "imagick",
    "Memcached": "memcached",
    "Redis": "redis",
    "AMQPConnection": "amqp",
    "tidy": "tidy",
}
"""A class → the extension of PHP that has it."""

_FUNCTIONS = {
    "mb": "mbstring",
    "curl": "curl",
    "gmp": "gmp",
    "bcadd": "bcmath",
    "bcmul": "bcmath",
    "imagecreatetruecolor": "gd",
    "ctype": "ctype",
    "iconv": "iconv",
    "intl": "intl",
    "simplexml": "simplexml",
    "dom": "dom",
    "xml": "xml",
    "utf8": "xml",
    "pcntl": "pcntl",
    "posix": "posix",
    "sodium": "sodium",
    "token": "tokenizer",
}
"""A function, or the beginning of its name → the extension of PHP that has it."""


def _class(name: str, evidence: str) -> Failure | None:
    extension = _CLASSES.get(name)
    return MissingModule(language="php", module=extension, evidence=evidence) if extension else None


def _function(name: str, evidence: str) -> Failure | None:
    extension = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.partition("_")[0])
    return MissingModule(language="php", module=extension, evidence=evidence) if extension else None


def _perl(module: str, evidence: str) -> Failure:
    return MissingModule(language="perl", module=module.replace("/", "::").removesuffix(".pm"), evidence=evidence)


def _gem(evidence: str, module: str = "", exact: str = "") -> Failure:
    return MissingModule(language="ruby", module=module or exact, evidence=evidence)


def _extensions(names: str, evidence: str) -> tuple[Failure, ...]:
    found = re.findall(r"\"(\w{1,40})\"", names)
    return tuple(MissingModule(language="php", module=one, evidence=evidence) for one in found)


def _stage(evidence: str, stage: str = "", second: str = "") -> Failure:
    return StageFailed(stage=stage or second, evidence=evidence, weight=Weight.SYMPTOM)


def _php(name: str, evidence: str) -> Failure | None:
    if name in {"file", "filename", "the", "this", "a", "that", "required"}:
        return None
    return MissingModule(language="php", module=name, evidence=evidence)


def _bundler(required: str, evidence: str) -> Failure:
    return VersionOutOfRange(
        tool="bundler", required=required.removeprefix("= "), because="Gemfile.lock", evidence=evidence
    )


def _prerequisite(module: str, evidence: str) -> Failure:
    """Makefile.PL goes on after it; what needs the module fails later."""
    return MissingModule(language="perl", module=module, evidence=evidence, weight=Weight.SYMPTOM)


def _perl_version(evidence: str, because: str = "", required: str = "", found: str = "") -> Failure:
    if because:
        return MissingModule(language="perl", module=because, evidence=evidence)
    return VersionOutOfRange(tool="perl", required=required, found=found, evidence=evidence)


def _gem_library(library: str, evidence: str, failed: str = "") -> Failure | None:
    """A check that says no is a failure if the next lines give up."""
    return MissingLibrary(library=library, when="link", evidence=evidence) if failed else None


SIGNATURES = (
    signature(
        "ould not locate Gemfile",
        r"Could not locate Gemfile",
        always(MissingProjectFile, path="Gemfile", tool="bundler"),
        ("Could not locate Gemfile or .bundle/ directory", MissingProjectFile(path="Gemfile", tool="bundler")),
    ),
    signature(
        "but your Gemfile specified",
        r"Your Ruby version is (?P<found>[\d.]{1,12}), but your Gemfile specified (?P<required>.{1,40})",
        always(VersionOutOfRange, tool="ruby"),
        (
            "Your Ruby version is 2.7.0, but your Gemfile specified >= 3.0",
            VersionOutOfRange(tool="ruby", required=">= 3.0", found="2.7.0"),
        ),
    ),
    signature(
        "ould not find ",
        r"Could not find (?:gems? '(?P<module>[\w.-]{1,80})|(?P<exact>[\w-]{1,80}?)-\d[\w.]{0,30})(?:[^']{0,300}"
        r"'?)? in "
        r"(?:locally installed gems|rubygems|cached gems|any of the sources)",
        _gem,
        (
            "Could not find gem 'rake (~> 13)' in locally installed gems.",
            MissingModule(language="ruby", module="rake"),
        ),
        (
            "Could not find rspec-core-3.12.0 in any of the sources",
            MissingModule(language="ruby", module="rspec-core"),
        ),
    ),
    signature(
        ("annot load such file -- ", "no such file to load -- "),
        r"(?:[^\s\"`']{0,200}:\d{1,6}:(?:in )?)?(?:[`'][\w.# ]{1,80}': )?"
        r"(?:cannot load such file|no such file to load) -- (?P<module>[\w./-]{1,120})",
        always(MissingModule, language="ruby"),
        (
            "/usr/lib/ruby/rubygems.rb:85:in `require': cannot load such file -- rspec (LoadError)",
            MissingModule(language="ruby", module="rspec"),
        ),
    ),
    signature(
        "missing from your system",
        r"(?:- )?[^\"'`#]{1,120} requires? (?:PHP extension )?ext-(?P<module>\w{1,40}) "
        r".{1,60} missing from your system",
        always(MissingModule, language="php"),
        (
            "    - Root composer.json requires PHP extension ext-intl * but it is missing from your system. Install",
            MissingModule(language="php", module="intl"),
        ),
    ),
    signature(
        "could not be resolved to an installable set",
        r"Your requirements could not be resolved to an installable set of packages",
        always(UnsatisfiableResolution, tool="composer"),
        (
            "Your requirements could not be resolved to an installable set of packages.",
            UnsatisfiableResolution(tool="composer"),
        ),
    ),
    signature(
        "does not satisfy that requirement",
        r"(?:- )?(?P<because>\S{1,100}(?: \S{1,60})?) requires? php (?P<required>\S{1,40}(?: \|\|? ?\S{1,20}){0,3}) "
        r"(?:-> |but )your (?:php|PHP) version \((?P<found>[\w.+~-]{1,30})\) does not satisfy that requirement",
        always(VersionOutOfRange, tool="php"),
        (
            "    - a/b requires php ^8.4 -> your php version (8.2.7) does not satisfy that requirement.",
            VersionOutOfRange(tool="php", required="^8.4", found="8.2.7", because="a/b"),
        ),
    ),
    signature(
        "ailed opening required",
        r"(?:PHP )?Fatal error: .{0,80}Failed opening required '[^']{0,160}vendor/autoload\.php'",
        always(DependenciesNotInstalled, tool="composer"),
        (
            "PHP Fatal error:  Uncaught Error: Failed opening required '/w/vendor/autoload.php' (include_path=",
            DependenciesNotInstalled(tool="composer"),
        ),
    ),
    signature(
        " not found",
        r"(?:PHP )?(?:Fatal error: .{0,40})?Error: Class [\"'](?P<name>\w{1,60})[\"'] not found",
        _class,
        (
            'PHP Fatal error:  Uncaught Error: Class "ZipArchive" not found in /w/a.php:3',
            MissingModule(language="php", module="zip"),
        ),
        near=('PHP Fatal error:  Uncaught Error: Class "App" not found in /w/a.php:3',),
    ),
    signature(
        "undefined function ",
        r"(?:PHP )?(?:Fatal error: .{0,40})?Error: Call to undefined function "
        r"(?:\\?\w{1,60}\\){0,1}(?P<name>\w{1,60})\(\)",
        _function,
        (
            "PHP Fatal error:  Uncaught Error: Call to undefined function mb_strlen() in /w/a.php:3",
            MissingModule(language="php", module="mbstring"),
        ),
    ),
    signature(
        "Can't locate ",
        r"Can't locate (?P<module>[\w/]{1,120}\.pm) in @INC",
        _perl,
        (
            "Can't locate XML/Parser.pm in @INC (you may need to install the XML::Parser module)",
            MissingModule(language="perl", module="XML::Parser"),
        ),
    ),
    signature(
        "ailed to build gem native extension",
        r"(?:[\w:]{1,60}: )?ERROR: Failed to build gem native extension",
        always(StageFailed, stage="a gem's extension", weight=Weight.SYMPTOM),
        (
            "Gem::Ext::BuildError: ERROR: Failed to build gem native extension.",
            StageFailed(stage="a gem's extension", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        ("extension is not available", "extensions are not available"),
        r"PHPUnit requires the .{1,200} extensions?, but the (?P<names>\"\w{1,40}\"(?:,? (?:and )?\"\w{1,40}\"){0,10}) "
        r"extensions? (?:is|are) not available",
        _extensions,
        (
            'PHPUnit requires the "dom", "json" extensions, but the "dom" extension is not available.',
            MissingModule(language="php", module="dom"),
        ),
    ),
    signature(
        ("xtension is missing", "xtension is not loaded", "xtension is required", "xtension is not installed"),
        LED + r"(?:[Tt]he )?[\"'`]?(?:PHP )?(?:ext-)?(?P<name>[a-z]\w{1,30})[\"'`]? (?:PHP )?extension "
        r"is (?:missing|not loaded|required|not installed)",
        _php,
        (
            "RuntimeException: The intl PHP extension is not loaded.",
            MissingModule(language="php", module="intl"),
        ),
        near=("RuntimeException: The file extension is missing",),
    ),
    signature(
        "requires Ruby version ",
        r"(?:ERROR: {1,3})?(?P<because>[\w.-]{1,80}) requires Ruby version (?P<required>[<>=~!]{0,2} ?[\d.]{1,12}"
        r"(?:, [<>=~!]{1,2} ?[\w.]{1,16})?)\. The current ruby version is (?P<found>[\d.]{1,12}\d)",
        always(VersionOutOfRange, tool="ruby"),
        (
            "bundler requires Ruby version >= 2.6.0. The current ruby version is 2.5.0.",
            VersionOutOfRange(tool="ruby", required=">= 2.6.0", found="2.5.0", because="bundler"),
        ),
    ),
    signature(
        ") required by your ",
        r"(?:[^\s\"`]{0,200}:\d{1,6}:in )?(?:[`'][\w.# ]{1,80}': )?Could not find '?bundler'? "
        r"\((?P<required>[^)]{1,40})\) required by your ",
        _bundler,
        (
            "/u/dependency.rb:3:in `to_specs': Could not find 'bundler' (= 1.17.3) required by your /w/Gemfile.lock.",
            VersionOutOfRange(tool="bundler", required="1.17.3", because="Gemfile.lock"),
        ),
    ),
    signature(
        "ould not find '",
        r"(?:[^\s\"`]{0,200}:\d{1,6}:in )?(?:[`'][\w.# ]{1,80}': )?(?:[\w:]{1,60}: )?Could not find "
        r"'(?P<module>[\w.-]{1,80})' "
        r"\([^)]{1,60}\) among ",
        always(MissingModule, language="ruby"),
        (
            "/u/dependency.rb:298:in `to_specs': Could not find 'rake' (>= 0) among 13 total gem(s) (Gem::LoadError)",
            MissingModule(language="ruby", module="rake"),
        ),
    ),
    signature(
        ("ould not find compatible versions", "ould not find gem "),
        r"Bundler could not find compatible versions for gem \"(?P<requirement>[\w.-]{1,80})\"",
        always(UnsatisfiableResolution, tool="bundler"),
        (
            'Bundler could not find compatible versions for gem "httpi":',
            UnsatisfiableResolution(tool="bundler", requirement="httpi"),
        ),
    ),
    signature(
        "ould not find a valid gem ",
        r"(?:ERROR: {1,3})?Could not find a valid gem '(?P<requirement>[\w.-]{1,80})'",
        always(UnsatisfiableResolution, tool="gem"),
        (
            "ERROR:  Could not find a valid gem 'bundler' (= 1.3.2) in any repository",
            UnsatisfiableResolution(tool="gem", requirement="bundler"),
        ),
    ),
    signature(
        "rerequisite ",
        r"(?:Warning: )?[Pp]rerequisite (?P<module>[A-Z]\w{0,40}(?:::\w{1,40}){0,6}) (?:v?[\d._]{1,16} )?not found",
        _prerequisite,
        (
            "Warning: prerequisite Moo 2.0 not found.",
            MissingModule(language="perl", module="Moo", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "Can't locate loadable object",
        r"(?:.{0,80}: )?Can't locate loadable object for module (?P<module>[\w:]{1,100}) in @INC",
        _perl,
        (
            "Can't locate loadable object for module DBD::SQLite in @INC (@INC contains: /etc/perl)",
            MissingModule(language="perl", module="DBD::SQLite"),
        ),
    ),
    signature(
        ("Base class package ", "is not installed"),
        r"Base class package \"(?P<module>\w{1,40}(?:::\w{1,40}){0,6})\" is empty",
        _perl,
        ('Base class package "Module::Build" is empty.', MissingModule(language="perl", module="Module::Build")),
    ),
    signature(
        " is not installed",
        r"(?:-> FAIL |[!] {1,3})?(?P<module>[A-Z]\w{0,40}::\w[\w:]{0,80}) (?:\([\d.]{1,12}\) )?is not installed",
        _perl,
        ("!  Test::Deep is not installed", MissingModule(language="perl", module="Test::Deep")),
    ),
    signature(
        "required--this is only ",
        r"(?:(?P<because>[A-Z][\w:]{1,80}) version \S{1,16} required|Perl v?(?P<required>[\d.]{1,12}) required)"
        r"--this is only (?:version )?v?(?P<found>[\w.]{1,12}\w)",
        _perl_version,
        (
            "Perl v5.38.0 required--this is only v5.36.0, stopped at a.pl line 1.",
            VersionOutOfRange(tool="perl", required="5.38.0", found="5.36.0"),
        ),
        (
            "Test::More version 1.3 required--this is only version 1.1 at t/a.t line 2.",
            MissingModule(language="perl", module="Test::More"),
        ),
    ),
    signature(
        "checking for ",
        r"checking for \w{1,60}\(\) in -l(?P<library>[\w.+-]{1,40})\.\.\. no$",
        _gem_library,
        (
            "checking for magic_load() in -lmagic... no\n*** ERROR: missing library to compile this module",
            MissingLibrary(library="magic", when="link"),
        ),
        (
            "checking for f() in -la... no\nchecking for f() in -lb... yes\ncreating Makefile",
            None,
        ),
        follow=r"(?P<failed>\*\*\* (?:ERROR: missing|extconf\.rb failed)|.{0,60}(?:is|are) (?:missing|required|not "
        r"found))",
        within=2,
    ),
    signature(
        "ould not find a JavaScript runtime",
        LED + r"Could not find a JavaScript runtime",
        always(MissingToolchain, language="node"),
        (
            "ExecJS::RuntimeUnavailable: Could not find a JavaScript runtime. See the list of available runtimes.",
            MissingToolchain(language="node"),
        ),
    ),
    signature(
        "rror occurred while installing ",
        r"An error occurred while installing (?P<stage>[\w.-]{1,80}) \([^)]{1,40}\), and Bundler$|"
        r"An error occurred while installing (?P<second>[\w.-]{1,80}) \([^)]{1,40}\), and Bundler cannot",
        _stage,
        (
            "An error occurred while installing nokogiri (1.10.1), and Bundler cannot continue.",
            StageFailed(stage="nokogiri", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        ("onfigure failed for ", " failed. See"),
        r"! (?:Configure failed for (?P<stage>[\w.:-]{1,80})\. See|Installing (?P<second>[\w.:-]{1,80}) failed\. See)",
        _stage,
        (
            "! Configure failed for XML-LibXML-2.0208. See /x/build.log for details.",
            StageFailed(stage="XML-LibXML-2.0208", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "No composer.json ",
        r"(?:No composer\.json (?:present|found) in|Composer could not find a composer\.json file)",
        always(NotInstallable, tool="composer", problem="no-manifest"),
        (
            "  No composer.json present in the current directory",
            NotInstallable(tool="composer", problem="no-manifest"),
        ),
    ),
    signature(
        "your Gemfile requires ",
        r"(?:[\w:]{1,60}: )?You have already activated \S{1,60} [\w.]{1,20}, but your Gemfile requires "
        r"(?P<requirement>\S{1,60} [\w.]{1,20}?)\.(?: |$)",
        always(UnsatisfiableResolution, tool="bundler"),
        (
            "You have already activated rake 13.1.0, but your Gemfile requires rake 13.0.6. Prepending it may help",
            UnsatisfiableResolution(tool="bundler", requirement="rake 13.0.6"),
        ),
    ),
    signature(
        "ould not find driver",
        r"(?:PHP )?(?:Fatal error: {1,2}Uncaught )?(?:[\w\\]{0,60}PDOException: )could not find driver",
        always(MissingModule, language="php", module="pdo"),
        ("PDOException: could not find driver", MissingModule(language="php", module="pdo")),
    ),
    signature(
        ('" not found', "' not found"),
        r"(?:PHP )?(?:Fatal error: .{0,40})?Error: Class [\"'](?:PHPUnit\\|PHPUnit_)[\w\\]{1,60}[\"'] not found",
        always(DependenciesNotInstalled, tool="composer"),
        (
            'Error: Class "PHPUnit\\Framework\\TestCase" not found',
            DependenciesNotInstalled(tool="composer"),
        ),
    ),
    signature(
        "ou need to set up the project dependencies",
        r"You need to set up the project dependencies using Composer",
        always(DependenciesNotInstalled, tool="composer"),
        (
            "You need to set up the project dependencies using Composer:",
            DependenciesNotInstalled(tool="composer"),
        ),
    ),
    signature(
        "but that version could not be found",
        r"Your bundle is locked to (?P<requirement>\S{1,60} \([^)]{1,40}\))(?: from .{1,120})?, but that "
        r"version could not be found",
        always(UnsatisfiableResolution, tool="bundler"),
        (
            (
                "Your bundle is locked to mimemagic (0.3.5), but that version could not be found in any of the "
                "sources listed"
            ),
            UnsatisfiableResolution(tool="bundler", requirement="mimemagic (0.3.5)"),
        ),
    ),
    signature(
        "No Rakefile found",
        r"No Rakefile found \(looking for",
        always(MissingProjectFile, path="Rakefile", tool="rake"),
        ("No Rakefile found (looking for: rakefile, Rakefile)", MissingProjectFile(path="Rakefile", tool="rake")),
    ),
    signature(
        "lock file does not contain a compatible",
        r"Your lock file does not contain a compatible set of packages",
        always(UnfitLock, tool="composer", problem="stale"),
        (
            "Your lock file does not contain a compatible set of packages. Please run composer update.",
            UnfitLock(tool="composer", problem="stale"),
        ),
    ),
)
"""What Ruby's, PHP's and Perl's tools say."""
