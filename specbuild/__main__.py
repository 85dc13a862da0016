"""`python -m specbuild` is the command `specbuild`."""

from __future__ import annotations

import sys

from specbuild.cli import main

if __name__ == "__main__":
    sys.exit(main())
