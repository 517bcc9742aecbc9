"""Trials in threads, in processes and on a Dask cluster: the same bytes, and a worker that dies."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from openqnn.api.files import open_graph
from openqnn.api.quantize_variants import bytes_of_graph, calibrate_variants
from openqnn.errors import BackendError, UsageError
from openqnn.evaluation import run_trials as module
from openqnn.evaluation.inference import all_options
from openqnn.evaluation.run_trials import TRIES, run_trials
from openqnn.evaluation.trial import Trial, TrialResult
from tests.cli.tool import environment
from tests.evaluation.data import MODEL
from tests.models.fetch import model_path
from tests.models.sets import data_set

REPOSITORY = Path(__file__).parents[2]


def trials(count: int) -> list[Trial]:
    graph, samples = open_graph(model_path(MODEL)), data_set(MODEL).calibration[:3]
    options = all_options("htp", "x86_64-linux-clang", 8, 8)[:count]
    shared = calibrate_variants(graph, samples, [o.variant for o in options if o.variant is not None])
    stored = bytes_of_graph(graph)
    return [Trial(o, str(model_path(MODEL)), samples, stored, calibration=shared) for o in options]


def outputs(results: Iterator[tuple[int, TrialResult]]) -> dict[int, list[bytes]]:
    found = dict(results)
    assert not any(r.error for r in found.values()), found
    return {
        i: [a.tobytes() for o in r.outputs for a in o.values()] + [np.asarray(r.graph).tobytes()]
        for i, r in sorted(found.items())
    }


def test_threads_and_processes_give_the_same_bytes() -> None:
    work = trials(4)
    alone = outputs(run_trials(work, jobs=1))
    assert len(alone) == 4
    assert outputs(run_trials(work)) == alone
    assert outputs(run_trials(work, jobs=2)) == alone


def _dying(place: int, trial: Trial) -> tuple[int, TrialResult]:
    """A trial whose worker is killed: always that of the first, and once that of the second."""
    mark = Path(trial.source)
    if trial.inference.label == "first" or (trial.inference.label == "second" and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), 9)
    return place, TrialResult(notes=[trial.inference.label])


def test_a_worker_that_dies_costs_one_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from openqnn.evaluation.inference import Inference

    monkeypatch.setattr(module, "_numbered", _dying)
    labels = ["third", "second", "first", "fourth", "fifth"]
    work: list[Any] = [
        Trial(Inference(label), str(tmp_path / "died"), [], np.zeros(0, np.uint8)) for label in labels
    ]
    found = dict(run_trials(work, jobs=2))
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert f"the worker died {TRIES} times" in found[2].error
    assert [found[i].notes for i in (0, 1, 3, 4)] == [["third"], ["second"], ["fourth"], ["fifth"]]


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    """One scheduler and one worker on this machine, ended by their process ids."""
    pytest.importorskip("distributed")
    script = (
        "import sys, time\n"
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)\n"
        "    print(cluster.scheduler_address, flush=True)\n"
        "    sys.stdin.read()\n"
        "    cluster.close()\n"
    )
    path = tmp_path / "cluster.py"
    path.write_text(script)
    process = subprocess.Popen(
        [sys.executable, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=environment(), cwd=REPOSITORY,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("tcp://")
        work = trials(2)
        assert outputs(run_trials(work, on=f"dask://{address}")) == outputs(run_trials(work, jobs=1))
    finally:
        process.communicate("", timeout=60)


@pytest.mark.slow
def test_a_cluster_that_does_not_answer() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(BackendError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        dict(run_trials(trials(1), on="dask://127.0.0.1:9"))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _until_answered(port: int, process: subprocess.Popen[bytes], seconds: float = 90) -> None:
    for _ in range(int(seconds * 2)):
        assert process.poll() is None, "the Ray cluster ended by itself"
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError("no Ray cluster answers")


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    """A Ray cluster of one worker on this machine, ended by its process id."""
    pytest.importorskip("ray")
    main, client = _free_ports(2)
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # names of sockets below it are short
    words = [
        Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--num-cpus=1", f"--port={main}",
        f"--ray-client-server-port={client}", "--include-dashboard=false", "--disable-usage-stats",
        "--node-ip-address=127.0.0.1", f"--temp-dir={folder}",
    ]  # fmt: skip
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), cwd=REPOSITORY
    )
    try:
        _until_answered(client, process)
        yield f"ray://127.0.0.1:{client}"
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_bytes(ray_address: str) -> None:
    work = trials(2)
    assert outputs(run_trials(work, on=ray_address)) == outputs(run_trials(work, jobs=1))


def _killed(trial: Trial) -> TrialResult:
    return _dying(0, trial)[1]


@pytest.mark.slow
def test_a_killed_worker_costs_one_item_on_ray(
    ray_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openqnn.evaluation.inference import Inference

    monkeypatch.setattr(module, "run_trial", _killed)
    labels = ["third", "second", "first", "fourth"]
    work: list[Any] = [
        Trial(Inference(label), str(tmp_path / "died"), [], np.zeros(0, np.uint8)) for label in labels
    ]
    found = dict(run_trials(work, on=ray_address))
    assert sorted(found) == [0, 1, 2, 3]
    assert f"the worker died {TRIES} times" in found[2].error
    assert [found[i].notes for i in (0, 1, 3)] == [["third"], ["second"], ["fourth"]]


@pytest.mark.slow
def test_a_ray_cluster_that_does_not_answer() -> None:
    pytest.importorskip("ray")
    with pytest.raises(BackendError, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
        dict(run_trials(trials(1), on="ray://127.0.0.1:9"))


def test_ray_without_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install ray` is not enough to connect to a cluster."""

    def init(**_: object) -> None:
        raise ValueError("Ray Client requires pip package `ray[client]`")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with pytest.raises(UsageError, match="does not connect") as caught:
        dict(run_trials(trials(1), on="ray://127.0.0.1:9"))
    assert "ray[client]" in str(caught.value.hint)
