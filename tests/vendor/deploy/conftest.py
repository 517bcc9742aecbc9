"""Devices on the loopback interface: a real sshd, and a device that the real adb talks to."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on the loopback interface, with keys of its own."""
    server = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if not server or not shutil.which("ssh") or os.getuid():
        pytest.skip("no sshd that this user may run")
    port = 22000 + os.getpid() % 2000
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "authorized").write_bytes((tmp_path / "user.pub").read_bytes())
    Path("/run/sshd").mkdir(exist_ok=True)
    options = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": tmp_path / "host", "StrictModes": "no",
        "AuthorizedKeysFile": tmp_path / "authorized", "PidFile": tmp_path / "pid", "UsePAM": "no",
    }  # fmt: skip
    (tmp_path / "config").write_text("".join(f"{key} {value}\n" for key, value in options.items()))
    process = subprocess.Popen([server, "-D", "-e", "-f", tmp_path / "config"], stderr=subprocess.DEVNULL)
    for _ in range(100):  # until it listens
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    quiet = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    monkeypatch.setenv("OPENQNN_SSH", f"ssh -F none -i {tmp_path / 'user'} {quiet}")
    try:
        yield f"ssh://root@127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def adb_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Makes a device for the real adb, with a server of its own; `room` is the largest file that it takes."""
    if not shutil.which("adb"):
        pytest.skip("no adb")
    adb, devices = ["adb", "-P", str(free_port())], list[subprocess.Popen[str]]()
    monkeypatch.setenv("OPENQNN_ADB", " ".join(adb))

    def made(room: int = -1) -> str:
        port = free_port()
        program = [sys.executable, "-m", "tests.vendor.deploy.adb_device", str(port), str(room)]
        devices.append(subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        assert devices[-1].stdout is not None
        assert devices[-1].stdout.readline() == "ready\n"
        subprocess.run([*adb, "connect", f"127.0.0.1:{port}"], capture_output=True, check=True)
        return f"127.0.0.1:{port}"

    try:
        yield made
    finally:
        for device in devices:
            device.kill()
            device.communicate()
        subprocess.run([*adb, "kill-server"], capture_output=True, check=False)
