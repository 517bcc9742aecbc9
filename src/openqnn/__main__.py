"""`python -m openqnn` is the command `openqnn`."""

from __future__ import annotations

import sys

from openqnn.cli.start import openqnn

if __name__ == "__main__":
    sys.exit(openqnn())
