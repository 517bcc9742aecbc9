"""Running trials: in this process, in others on this machine by joblib, or on a Dask or Ray cluster.

The trials are independent and give the same results wherever they run. A worker that dies costs the trial
that it was at: that is done again, twice at most, and then it is a result with an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from openqnn.errors import BackendError, UsageError
from openqnn.evaluation.trial import Trial, TrialResult, run_trial
from openqnn.quant.calibration import cores

TRIES = 3
ONE_BY_ONE: Any = {"return_as": "generator_unordered", "batch_size": 1}
RAY = "pip install 'ray[client]'"
LONG = 20.0  # seconds of work that are worth processes of their own, which take seconds to start


def run_trials(
    trials: Sequence[Trial], *, jobs: int = 0, on: str = "", seconds: float = 0.0
) -> Iterator[tuple[int, TrialResult]]:
    """The place of each trial with its result, in the order in which they come. `seconds` is what all take
    on one core, as far as that is known; `on` is dask://host:port or ray://host:port."""
    if on:
        yield from _on_cluster(trials, on)
        return
    count = min(jobs or cores(), len(trials))
    if count <= 1:
        yield from ((i, run_trial(trial)) for i, trial in enumerate(trials))
    else:
        yield from _on_cores(trials, count, "threading" if seconds < LONG and not jobs else "loky")


def _numbered(place: int, trial: Trial) -> tuple[int, TrialResult]:
    return place, run_trial(trial)


def _on_cores(trials: Sequence[Trial], count: int, backend: str) -> Iterator[tuple[int, TrialResult]]:
    try:
        import joblib
    except ImportError:
        yield from ((i, run_trial(trial)) for i, trial in enumerate(trials))
        return
    left, deaths = dict(enumerate(trials)), 0
    while left:
        # behind the second death one at a time, so that the trial that kills its worker is known
        batch = dict(list(left.items())[: None if deaths < TRIES - 1 else 1])
        try:
            pool: Any = joblib.Parallel(n_jobs=count, backend=backend, **ONE_BY_ONE)
            for place, result in pool(joblib.delayed(_numbered)(i, trial) for i, trial in batch.items()):
                del left[place]
                yield place, result
        except _died() as error:
            deaths += 1
            if deaths >= TRIES and len(batch) == 1:
                place, deaths = next(iter(batch)), 0
                del left[place]
                yield place, TrialResult(error=_lost(error))


def _died() -> tuple[type[BaseException], ...]:
    from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    return (TerminatedWorkerError, BrokenProcessPool)


def _lost(error: BaseException) -> str:
    words = str(error).strip().splitlines()
    return f"the worker died {TRIES} times: {words[0] if words else type(error).__name__}"


def _on_cluster(trials: Sequence[Trial], on: str) -> Iterator[tuple[int, TrialResult]]:
    kind, sign, address = on.partition("://")
    if not sign or not address or kind not in ("dask", "ray"):
        raise UsageError(f"--on {on!r} names no cluster", hint="dask://host:port or ray://host:port")
    yield from (_on_dask if kind == "dask" else _on_ray)(trials, address)


def _on_dask(trials: Sequence[Trial], address: str) -> Iterator[tuple[int, TrialResult]]:
    """Dask hands the trials of a worker that died to others by itself."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise UsageError(
            "--on dask:// needs the package distributed", hint="pip install distributed"
        ) from None
    try:
        client: Any = Client(f"tcp://{address}", timeout=10)
    except OSError as error:
        raise BackendError(f"no Dask scheduler answers at {address} ({error})") from error
    try:
        futures = {
            client.submit(run_trial, t, pure=False, retries=TRIES - 1): i for i, t in enumerate(trials)
        }
        for future in as_completed(futures):
            failure = future.exception()
            yield futures[future], future.result() if failure is None else TrialResult(error=_lost(failure))
    finally:
        client.close()


def _on_ray(trials: Sequence[Trial], address: str) -> Iterator[tuple[int, TrialResult]]:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UsageError("--on ray:// needs the package ray", hint=RAY) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Ray advises is in the error, too
            ray.init(address=f"ray://{address}", ignore_reinit_error=True)
    except ConnectionError as error:
        raise BackendError(f"no Ray cluster answers at {address} ({error})") from error
    except ValueError as error:  # what Ray says without its part for clients
        raise UsageError(f"Ray does not connect to {address}: {error}", hint=RAY) from error
    remote: Any = ray.remote(max_retries=TRIES - 1)(run_trial)
    try:
        waiting = {remote.remote(trial): i for i, trial in enumerate(trials)}
        while waiting:
            done, _ = ray.wait(list(waiting))
            for reference in done:
                place = waiting.pop(reference)
                try:
                    yield place, ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield place, TrialResult(error=_lost(error))
    finally:
        ray.shutdown()
