"""Ruby, PHP and Perl."""

from __future__ import annotations

from specbuild.failures import (
    DependenciesNotInstalled,
    Failure,
    MissingModule,
    MissingProjectFile,
    StageFailed,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
)
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
        r"Could not find (?:gem '(?P<module>[\w.-]{1,80})|(?P<exact>[\w-]{1,80}?)-\d[\w.]{0,30})(?:[^']{0,60}')? in "
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
        r".{1,30} missing from your system",
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
        r"(?:- )?(?P<because>\S{1,100}(?: composer\.json)?) requires php (?P<required>\S{1,40}(?: \|\| \S{1,20})?) "
        r"(?:-> |but )your php version \((?P<found>[\w.+~-]{1,30})\) does not satisfy that requirement",
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
)
"""What Ruby's, PHP's and Perl's tools say."""
