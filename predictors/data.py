"""Locales and time zones."""

from __future__ import annotations

from specbuild.failures import MissingLocale, MissingTimezone, Weight
from specbuild.predictors.phrases import LED, OUTCOME
from specbuild.predictors.signature import always, signature

SIGNATURES = (
    signature(
        "unsupported locale setting",
        OUTCOME + r"locale\.Error: unsupported locale setting",
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
)
"""What is read at run time and was not installed."""
