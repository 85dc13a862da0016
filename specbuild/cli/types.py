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
    value = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        seconds = float(value)
    elif re.fullmatch(r"(\d+d)?(\d+h)?(\d+m)?(\d+s)?", value):
        seconds = float(sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([dhms])", value)))
    else:
        seconds = 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} is no duration; write it as 90s, 10m, 1h30m or 7d")
    return seconds
