"""Locales and time zones."""

from __future__ import annotations

from specbuild.failures import MissingData, MissingLocale, MissingTimezone, Weight
from specbuild.predictors.phrases import LED, OUTCOME
from specbuild.predictors.signature import always, signature


def _zone(evidence: str, zone: str = "") -> MissingTimezone:
    return MissingTimezone(zone=zone, evidence=evidence)


SIGNATURES = (
    signature(
        ("unsupported locale setting", "rror: locale query failed"),
        OUTCOME + r"locale\.Error: (?:unsupported locale setting|locale query failed)",
        MissingLocale,
        ("locale.Error: unsupported locale setting", MissingLocale()),
    ),
    signature(
        "annot change locale (",
        r"(?:\S{1,40}: )?(?:\S{1,60}: )?warning: setlocale: \S{1,30}: "
        r"cannot change locale \((?P<locale>[\w.@-]{1,40})\)",
        always(MissingLocale, weight=Weight.WARNING),
        (
            "bash: warning: setlocale: LC_ALL: cannot change locale (fr_FR.UTF-8)",
            MissingLocale(locale="fr_FR.UTF-8", weight=Weight.WARNING),
        ),
    ),
    signature(
        "etting locale failed",
        r"perl: warning: Setting locale failed",
        always(MissingLocale, weight=Weight.WARNING),
        ("perl: warning: Setting locale failed.", MissingLocale(weight=Weight.WARNING)),
    ),
    signature(
        "No time zone found with key",
        OUTCOME + r"(?:[\w.]{1,60}\.)?ZoneInfoNotFoundError: ['\"]No time zone found with key "
        r"(?P<zone>[\w/+-]{1,60})",
        MissingTimezone,
        (
            "zoneinfo._common.ZoneInfoNotFoundError: 'No time zone found with key Europe/Rome'",
            MissingTimezone(zone="Europe/Rome"),
        ),
    ),
    signature(
        "UnknownTimeZoneError",
        OUTCOME + r"(?:pytz\.exceptions\.)?UnknownTimeZoneError: '(?P<zone>[\w/+-]{1,60})'",
        MissingTimezone,
        ("pytz.exceptions.UnknownTimeZoneError: 'US/New'", MissingTimezone(zone="US/New")),
    ),
    signature(
        "unknown time zone",
        LED + r"unknown time zone (?P<zone>[\w/+-]{1,60})",
        MissingTimezone,
        ("panic: unknown time zone America/Lima", MissingTimezone(zone="America/Lima")),
    ),
    signature(
        "not found.",
        r"(?:\*{2,80} ?|LookupError: )?Resource (?P<path>[a-z]\w{1,60}) not found\.$",
        MissingData,
        ("  Resource punkt not found.", MissingData(path="punkt")),
    ),
    signature(
        "Can't find model ",
        OUTCOME + r"OSError: \[E\d{3}\] Can't find model '(?P<path>[\w./-]{1,80})'",
        MissingData,
        (
            "OSError: [E050] Can't find model 'en_core_web_sm'. It doesn't seem to be a Python package or a valid",
            MissingData(path="en_core_web_sm"),
        ),
    ),
    signature(
        ("to use ASCII as encoding", "in US-ASCII", "(US-ASCII)", "for encoding US-ASCII", "for encoding ASCII"),
        r"(?:[^\s\"`]{0,200}:\d{1,6}:in )?(?:[`'][\w.#?! ]{1,80}': )?"
        + LED
        + r"(?:configured to use ASCII as encoding|invalid byte sequence in US-ASCII|invalid multibyte char "
        r"\(US-ASCII\)"
        r"|unmappable character (?:\(0x\w{1,4}\) )?for encoding (?:US-)?ASCII)",
        always(MissingLocale, locale="UTF-8"),
        (
            "RuntimeError: Click will abort further execution because Python was configured to use ASCII as encoding",
            MissingLocale(locale="UTF-8"),
        ),
        (
            "/w/a.rb:3:in `split': invalid byte sequence in US-ASCII (ArgumentError)",
            MissingLocale(locale="UTF-8"),
        ),
    ),
    signature(
        ("invalid locale settings", "invalid locale"),
        LED + r"(?:invalid locale settings|invalid locale (?:name: )?[\"'](?P<locale>[\w.@-]{1,40})[\"'])",
        MissingLocale,
        ("initdb: error: invalid locale settings; check LANG and LC_* environment variables", MissingLocale()),
    ),
    signature(
        "name not valid",
        r"(?:what\(\): {0,4})?locale::facet::_S_create_c_locale name not valid",
        MissingLocale,
        ("  what():  locale::facet::_S_create_c_locale name not valid", MissingLocale()),
    ),
    signature(
        ("No source of timezone data", "nvalid timezone"),
        r"(?:[\w:]{1,60}: )?(?:No source of timezone data could be found|[Ii]nvalid timezone(?: identifier)?: "
        r"(?P<zone>[\w/+-]{1,60}))",
        _zone,
        (
            "TZInfo::ResolveError: No source of timezone data could be found, no time zone data",
            MissingTimezone(zone=""),
        ),
    ),
)
"""What is read at run time and was not installed."""
