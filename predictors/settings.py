"""Environment variables that must be set, as frameworks and plain code ask for them."""

from __future__ import annotations

from specbuild.failures import Failure, SettingNeeded, Weight
from specbuild.predictors.phrases import OUTCOME, RAISED
from specbuild.predictors.signature import signature

_VARIABLE = r"[\"'`‘“]?\$?\{?(?P<variable>[A-Z][A-Z0-9_]{2,60})\}?[\"'`’”]?"
_KNOWN = frozenset({"PATH", "HOME", "ERROR", "FATAL", "WARNING", "INFO", "THE", "NOT", "GET", "POST", "PUT", "HEAD"})


def _setting(variable: str, evidence: str) -> Failure | None:
    return None if variable in _KNOWN else SettingNeeded(variable=variable, evidence=evidence)


def _cloud(evidence: str, credentials: str = "") -> Failure:
    """The variables by which the client of the cloud is told what it lacks."""
    return SettingNeeded(variable="AWS_ACCESS_KEY_ID" if credentials else "AWS_DEFAULT_REGION", evidence=evidence)


def _alternative(variable: str, before: str, told: str, evidence: str) -> Failure | None:
    """A variable that is named beside a program or a package to install only tells where that is."""
    del told
    return None if "nstall" in before or "found" in before else _setting(variable, evidence)


def _pydantic(evidence: str, variable: str = "") -> Failure | None:
    """Fields of settings are read from variables of their names, in capitals."""
    return SettingNeeded(variable=variable.upper(), evidence=evidence) if variable else None


def _either(evidence: str, variable: str = "", second: str = "") -> Failure | None:
    return _maybe(variable or second, evidence)


def _maybe(variable: str, evidence: str) -> Failure | None:
    """Of messages that tests may provoke on purpose."""
    if variable in _KNOWN:
        return None
    return SettingNeeded(variable=variable, evidence=evidence, weight=Weight.SYMPTOM)


SIGNATURES = (
    signature(
        "not defined at compile time",
        r"error: environment variable `(?P<variable>[A-Z][A-Z0-9_]{2,60})` not defined at compile time",
        _setting,
        (
            "error: environment variable `BUILD_ID` not defined at compile time",
            SettingNeeded(variable="BUILD_ID"),
        ),
    ),
    signature(
        "setting must not be empty",
        OUTCOME + r"(?:[\w.]{1,80}\.)?ImproperlyConfigured: The (?P<variable>[A-Z][A-Z0-9_]{2,60}) setting must not",
        _setting,
        (
            "django.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.",
            SettingNeeded(variable="SECRET_KEY"),
        ),
    ),
    signature(
        "not found. Declare it as ",
        OUTCOME + r"(?:decouple\.)?UndefinedValueError: (?P<variable>[A-Z][A-Z0-9_]{2,60}) not found\. Declare it as",
        _setting,
        (
            "decouple.UndefinedValueError: SECRET_KEY not found. Declare it as envvar or define a default value.",
            SettingNeeded(variable="SECRET_KEY"),
        ),
    ),
    signature(
        "nvironment variable",
        OUTCOME + rf"(?:[\w.]{{1,80}}(?:Error|Exception|Configured): ){{1,2}}Set the {_VARIABLE} environment variable",
        _setting,
        (
            "django.core.exceptions.ImproperlyConfigured: Set the DATABASE_URL environment variable",
            SettingNeeded(variable="DATABASE_URL"),
        ),
        near=("Set the COLOR environment variable to your taste, error or not",),
    ),
    signature(
        "nvironment variable",
        r"(?:(?:error|panic|fatal|Error|ERROR): |[\w.:]{1,80}(?:Error|Exception|NotFound\w{0,20}|Invalid): )"
        r"(?:[\w.-]{1,30}: )?(?:(?:[Mm]issing |[Rr]equired |[Tt]he |[Uu]ndefined ){0,2}"
        rf"[Ee]nv(?:ironment)?[ -]?var(?:iable)?s?(?: not found| not set)?:? {_VARIABLE}(?:$|[ .,;])"
        rf"|{_VARIABLE.replace('?P<variable>', '?P<second>')} env(?:ironment)? ?var(?:iable)? (?:is |was |must be )?"
        r"(?:not set|not found|required|missing|unset|undefined|set))",
        _either,
        (
            'environs.EnvError: Environment variable "API_URL" not set',
            SettingNeeded(variable="API_URL", weight=Weight.SYMPTOM),
        ),
        (
            "Error: Missing required environment variable: STRIPE_KEY",
            SettingNeeded(variable="STRIPE_KEY", weight=Weight.SYMPTOM),
        ),
        (
            'panic: env: required environment variable "APP_PORT" is not set',
            SettingNeeded(variable="APP_PORT", weight=Weight.SYMPTOM),
        ),
        near=("Error: the environment variable was read",),
    ),
    signature(
        "must be set",
        r"(?:error: |thread '[^']{1,60}' panicked at )?(?:set )?`?(?P<variable>[A-Z][A-Z0-9_]{2,60})`? must be set"
        r"(?: to use|: NotPresent|$)",
        _setting,
        (
            "error: `DATABASE_URL` must be set to use query macros",
            SettingNeeded(variable="DATABASE_URL"),
        ),
        ("DATABASE_URL must be set: NotPresent", SettingNeeded(variable="DATABASE_URL")),
    ),
    signature(
        "key not found: ",
        r"(?:[^\s\"`]{0,200}:\d{1,6}:in )?(?:[`'][\w.#: ]{1,80}': )?(?:KeyError: )?key not found: "
        r"\"(?P<variable>[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{1,40})\"",
        _setting,
        (
            '/w/config.rb:3:in `fetch\': key not found: "DATABASE_URL" (KeyError)',
            SettingNeeded(variable="DATABASE_URL"),
        ),
    ),
    signature(
        "not resolve placeholder",
        RAISED + r"Could not resolve placeholder '(?P<variable>[A-Z][A-Z0-9_]{2,60})'",
        _setting,
        (
            "java.lang.IllegalArgumentException: Could not resolve placeholder 'DB_URL' in value \"${DB_URL}\"",
            SettingNeeded(variable="DB_URL"),
        ),
    ),
    signature(
        "missing value",
        r"(?:\d{4}/\d\d/\d\d [\d:]{8} )?(?:panic: )?required key (?P<variable>[A-Z][A-Z0-9_]{2,60}) missing value",
        _setting,
        ("panic: required key APP_PORT missing value", SettingNeeded(variable="APP_PORT")),
    ),
    signature(
        ("nable to locate credentials", "rror: You must specify a region"),
        OUTCOME + r"(?:botocore\.exceptions\.)?(?:No(?P<credentials>Credentials)Error: Unable to locate credentials"
        r"|NoRegionError: You must specify)",
        _cloud,
        (
            "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
            SettingNeeded(variable="AWS_ACCESS_KEY_ID"),
        ),
        ("botocore.exceptions.NoRegionError: You must specify a region.", SettingNeeded(variable="AWS_DEFAULT_REGION")),
    ),
    signature(
        "nvironment variable",
        OUTCOME + r"(?P<told>[\w.]{1,80}(?:Error|Exception|Configured)): (?P<before>.{0,160}?)\b(?:[Ss]et(?:ting)?"
        r"|[Dd]efine|[Ee]xport|[Pp]rovide) "
        rf"(?:the |an? )?(?:environment variable )?{_VARIABLE} ?(?:environment variable(?! to (?:override"
        rf"|change|point|use))|env var|in (?:the|your) environment|$)",
        _alternative,
        (
            (
                "openai.OpenAIError: The key must be set by passing it or by setting the OPENAI_API_KEY environment "
                "variable"
            ),
            SettingNeeded(variable="OPENAI_API_KEY"),
        ),
        near=("ValueError: setting the value in the environment variable",),
    ),
    signature(
        "validation error",
        OUTCOME
        + r"(?:pydantic\S{0,60}\.)?ValidationError: \d{1,3} validation errors? for (?:\w{0,40}(?:Settings|Config"
        r"|Env)\w{0,40})$",
        _pydantic,
        (
            (
                "E   pydantic_core.ValidationError: 1 validation error for Settings\nE   database_url\nE     Field "
                "required [type="
            ),
            SettingNeeded(variable="DATABASE_URL"),
        ),
        near=("pydantic.ValidationError: 1 validation error for User",),
        follow=r"(?P<variable>[A-Za-z]\w{1,60})$",
        within=1,
    ),
    signature(
        (" not set", " is required", "is not set", "must be set", "undefined"),
        r"(?:error|ERROR|Error|fatal|panic): (?:[Tt]he )?(?:[Ee]nvironment variable |env var "
        r")?\$?(?P<variable>[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{1,40}) "
        r"(?:is |was |must be )?(?:not set|required|undefined|unset|set|not defined)",
        _maybe,
        (
            "error: XDG_RUNTIME_DIR not set in the environment.",
            SettingNeeded(variable="XDG_RUNTIME_DIR", weight=Weight.SYMPTOM),
        ),
    ),
)
"""Settings that come from the environment."""
