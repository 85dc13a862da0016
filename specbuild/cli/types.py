"""Readers of option values that click has no type for; give them to `click.option` as `type`."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def to_bytes(text: str) -> int:
    """Bytes of `512M`, `8G`, `1.5GiB`, or of a bare number; units are powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    amount = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if amount <= 0:
        raise click.BadParameter(f"{text!r} is no size; write it as 512M or 8G")
    return amount


def to_seconds(text: str) -> float:
    """Seconds of `90`, `90s`, `10m`, `1h30m`, `7d`."""
    seconds = to_age(text)
    if not seconds:
        raise click.BadParameter(f"{text!r} is no time at all; write it as 90s, 10m, 1h30m or 7d")
    return seconds


def to_age(text: str) -> float:
    """As `to_seconds`, or nothing: `0`, `0s`."""
    value = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    if value and re.fullmatch(r"(\d+d)?(\d+h)?(\d+m)?(\d+s)?", value):
        return float(sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([dhms])", value)))
    raise click.BadParameter(f"{text!r} is no duration; write it as 90s, 10m, 1h30m or 7d")
