"""Which variables repairs may set because output or CI speaks of them."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERING = re.compile(
    r"PATH|HOME|SHELL|ENV|BASH_ENV|IFS|\w*_?PROXY|(?:LD|GCONV)_\w*|PYTHON\w*|PYTEST\w*|PERL\w*|RUBY\w*|NODE_(?!ENV$)\w*"
    r"|J(?:AVA|DK)_(?!HOME$)\w*|GO[A-Z]+|(?:PIPX?|UV|CONDA|POETRY|PDM|PIPENV|NPM|YARN|CARGO|RUSTUP|RUSTC|GEM|BUNDLE|APT"
    r"|DEBIAN|GIT|SSH|SSL|CURL|REQUESTS|MAVEN|GRADLE|COMPOSER|DOCKER|SPECBUILD)_\w*",
    re.IGNORECASE | re.ASCII,
)
"""Which programs and libraries run, where software comes from, which tests are run: of us and the user to say."""


def is_settable(name: str) -> bool:
    """Whether it is a name, and of a setting that concerns the project alone."""
    return bool(_NAME.fullmatch(name)) and not _STEERING.fullmatch(name)
