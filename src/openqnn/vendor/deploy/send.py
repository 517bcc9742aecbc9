"""Sending a bundle to a device, running it there, and holding the results against the golden ones."""

from __future__ import annotations

import secrets
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from openqnn.errors import BackendError
from openqnn.vendor.deploy.devices import Device, find_device


def send_bundle(bundle: Path, target: str, place: str) -> str:
    """Push, run, pull, compare; gives what the comparison says. Nothing stays on the device."""
    with tempfile.TemporaryDirectory() as folder:
        run_there(find_device(target), bundle, place, Path(folder))
        return _compared(bundle, folder)


def run_there(device: Device, folder: Path, place: str, outputs: Path) -> str:
    """Send a folder, run its run.sh, fetch what that left in `outputs`; gives what it said.

    Nothing stays on the device.
    """
    where = f"{place.rstrip('/')}/openqnn_{folder.resolve().name}_{secrets.token_hex(4)}"
    try:
        device.push(folder, where)
        said = device.run(f"cd {shlex.quote(where)} && sh run.sh")
        device.pull(f"{where}/outputs", outputs)
        return said
    finally:
        with suppress(BackendError):  # the device is gone, which has been said
            device.run(f"rm -rf {shlex.quote(where)}")


def _compared(bundle: Path, outputs: str) -> str:
    command = [sys.executable, str(bundle / "selftest.py"), "--compare", outputs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(f"the device computes other results: {done.stderr.strip()}")
    return done.stdout.strip()
