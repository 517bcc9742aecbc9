"""The option that allows files to be run in order to be read."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class TrustOptions:
    """Files that are programs."""

    run_code: bool = option(
        False, "--run_code",
        help="run model libraries (.so) and Saver bundles (.c) to read them: only files that you trust",
    )  # fmt: skip
