"""Parts of patterns that several families share. They take part in `match`, so they begin at the start of a line."""

from __future__ import annotations

OUTCOME = r"(?:(?:FAILED|ERROR) .{1,300}? - )?"
"""pytest's summary repeats the exception behind the name of the test."""

RAISED = OUTCOME + r"(?:[A-Za-z][\w.:\\]{0,100}: )?(?:\([\w.]{1,100}\) )?"
"""An exception's name, as the last line of a traceback has it, and that of one that it wraps."""

LED = (
    r"(?:(?:[A-Za-z][\w.:\\]{0,100}(?:Error|Exception|Timeout|Warning)"
    r"|ERROR|WARNING|error|fatal|Caused by|cause|panic|curl): "
    r".{0,300}?|[^\"'`#]{0,200}?)"
)
"""Anything before a message that is its own: the name of what tells it, or words without quotes and comments."""

TOLD = (
    OUTCOME + r"(?P<told>(?!Assert|\w{0,40}Warning)(?:[A-Za-z]?[\w.:\\]{0,100}?"
    r"(?:Error|Exception\w{0,12}|NotFound|NotInstalled|Missing|Failure|Failed|Unavailable|Fault|Configured)(?: "
    r"\[\w{1,40}\])?"
    r"|[Ee]rror|ERROR|[Ff]atal|FATAL): {1,3}(?:Message: )?)"
)
"""What raises a message: an exception, or the word error; an assertion is about what a test compares."""
