"""Write and read Saver bundles (saver_output.c, params.bin), which Qualcomm can replay on any backend."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from openqnn.errors import BackendError, ModelError, OutputError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend, Progress
from openqnn.qnn.context import Context
from openqnn.qnn.library import load_library
from openqnn.qnn.net import Net
from openqnn.qnn.recorder import Recorder

WEIGHTS = "params.bin"
FILES = ("saver_output.c", WEIGHTS)
_OUTPUT_DIRECTORY = 0


def save_nets(nets: Sequence[Net], folder: str, library: str, progress: Progress) -> None:
    """Compose and finalize on libQnnSaver, which notes every call down in `folder`.

    Once per process: the library can be set up only once, and finishes its files when it is freed.
    """
    loaded = load_library(library)
    initialize = loaded.handle.QnnSaver_initialize
    initialize.restype = c.c_uint64
    path = c.c_char_p(os.fsencode(folder))
    config = abi.CustomConfig(option=_OUTPUT_DIRECTORY, custom=c.cast(path, c.c_void_p))
    configs = (c.c_void_p * 2)(c.addressof(config), None)
    code = initialize(configs)
    if code:
        raise BackendError(f"{loaded.name}: QnnSaver_initialize failed with error {code}")
    with Backend(loaded, capture=False, progress=progress) as backend, Context(backend) as context:
        for net in nets:
            context.compose(net, validate=False).finalize()
    missing = [name for name in FILES[:1] if not Path(folder, name).is_file()]
    if missing:
        raise OutputError(f"{loaded.name} did not write {missing[0]} to {folder}")


def replay(backend: Backend, program: str, folder: str) -> list[Net]:
    """The graphs of a bundle in `folder`, whose program was built as a library."""
    recorder = Recorder(backend.api, forward=False)
    library, interface = load_library(program), recorder.interface
    library.handle.openqnn_record(c.byref(interface))
    # The program opens its weights by their bare name.
    with chdir(folder), backend.api.quiet():
        try:
            run = library.handle.openqnn_replay
        except AttributeError:
            raise ModelError(
                f"{folder}: its source holds no program", hint="is it what libQnnSaver wrote?"
            ) from None
        code = run(1, (c.c_char_p * 2)(b"replay", None))
    if library.handle.openqnn_misses_weights():
        raise ModelError(f"{folder}/{WEIGHTS} is cut off", hint="copy it again, or let Saver write it again")
    if recorder.error is None and code:
        raise ModelError(f"{folder}: the Saver program failed with {code}")
    return recorder.nets()
