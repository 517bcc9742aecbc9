"""ONNX Runtime with each version of its QNN provider, in virtual environments of their own.

A version of the provider works with few versions of ONNX Runtime, and carries one version of Qualcomm's
libraries: no single environment has both. Tests find the environments in the root of the repository.

    python -m tests.providers     # makes those that are missing (`make test` calls it)

Where the packages cannot be installed, nothing is left behind, and the tests that need them are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = "OPENQNN_TEST_PYTHONS"
"""Interpreters of more environments with onnxruntime and onnxruntime-qnn to test, separated as in PATH."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One environment; `packages` is what `make` puts in, nothing for one that the user named."""

    id: str
    home: Path
    packages: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def folder(self) -> Path | None:
        """Where Qualcomm's libraries are."""
        return next(self.home.glob("lib/python3*/site-packages/onnxruntime_qnn"), None)

    @property
    def htp(self) -> Path:
        assert self.folder is not None
        return self.folder / "libQnnHtp.so"

    @property
    def marks(self) -> tuple[pytest.MarkDecorator, ...]:
        """Skips a test where the environment is not there."""
        reason = f"no onnxruntime-qnn {self.id} in {self.home.name}: run `make providers`"
        return () if self.folder is not None else (pytest.mark.skip(reason=reason),)

    @property
    def stamp(self) -> Path:
        """Written last: an environment without it was broken off."""
        return self.home / "installed"

    def make(self) -> None:
        """In place, because environments cannot be moved."""
        try:
            venv.create(self.home, with_pip=True, clear=True)
            command = [
                self.python,
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                "--no-compile",
            ]
            subprocess.run([*command, *self.packages], check=True, capture_output=True, text=True)
            self.stamp.touch()
        except BaseException:
            shutil.rmtree(self.home, ignore_errors=True)
            raise


def _provider(version: str, onnxruntime: str) -> Provider:
    packages = ("numpy", f"onnxruntime=={onnxruntime}", f"onnxruntime-qnn=={version}")
    return Provider(version, ROOT / f".venv-ep{version.replace('.', '')[:2]}", packages)


OURS = (_provider("2.3.0", "1.24.4"), _provider("2.7.0", "1.31.*"))  # QNN 2.47 and 2.51


def named() -> list[Provider]:
    """The environments of the interpreters that the user named."""
    homes = [
        Path(entry).absolute().parents[1] for entry in os.environ.get(PYTHONS, "").split(os.pathsep) if entry
    ]
    return [Provider(str(home), home) for home in homes]


def each_provider() -> pytest.MarkDecorator:
    """Run a test with each `provider`; one that is not installed is skipped with the reason."""
    cases = [pytest.param(p, id=p.id, marks=p.marks) for p in (*OURS, *named())]
    return pytest.mark.parametrize("provider", cases)


def main() -> int:
    for provider in OURS:
        if provider.stamp.exists():
            continue
        wanted = " and ".join(provider.packages[1:])
        print(f"installing {wanted} into {provider.home.name} ...", flush=True)
        try:
            provider.make()
        except (subprocess.CalledProcessError, OSError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            print(f"note: {wanted} could not be installed: tests with them are skipped")
            print(f"      ({said[-1] if said else 'pip failed'})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
