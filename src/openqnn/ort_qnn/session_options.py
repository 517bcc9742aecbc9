"""Options of a session: entries by key, as ONNX Runtime has them, and what those of contexts mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openqnn.errors import UsageError

ENABLE, FILE_PATH, EMBED = "ep.context_enable", "ep.context_file_path", "ep.context_embed_mode"
NODE_PREFIX, NO_FALLBACK = "ep.context_node_name_prefix", "session.disable_cpu_ep_fallback"
SHARE, STOP_SHARE = "ep.share_ep_contexts", "ep.stop_share_ep_contexts"
KEYS = (ENABLE, FILE_PATH, EMBED, NODE_PREFIX, SHARE, STOP_SHARE, NO_FALLBACK)


@dataclass
class SessionOptions:
    """Entries by key; those of ONNX Runtime that are about its own execution are kept and have no effect."""

    log_severity_level: int = 2
    intra_op_num_threads: int = 0
    _entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_session_config_entry(self, key: str, value: str) -> None:
        if key.startswith("ep.") and key not in KEYS:
            known = ", ".join(key for key in KEYS if key.startswith("ep."))
            raise UsageError(f"there is no session key {key!r}", hint=f"about contexts there are {known}")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise UsageError(f"the session key {key!r} is not set")
        return self._entries[key]


@dataclass(frozen=True, slots=True)
class ContextEntries:
    """What the entries say about writing a context, and about nodes that the provider does not take."""

    enable: bool = False
    path: str = ""
    embed: bool = True
    prefix: str = ""
    fallback: bool = True
    share: bool = False
    stop_share: bool = False

    def target(self, model: str) -> Path:
        """Where the context model goes: beside the model, as <model>_ctx.onnx, unless a path is given."""
        if self.path:
            return Path(self.path)
        if not model:
            raise UsageError(
                f"a model in memory needs {FILE_PATH!r}: there is no file to name the context by"
            )
        return Path(model).with_name(f"{Path(model).stem}_ctx.onnx")


def context_entries(options: Any) -> ContextEntries:
    """From our SessionOptions, or ONNX Runtime's own."""
    if options is None:
        return ContextEntries()
    return ContextEntries(
        _flag(options, ENABLE, False),
        _entry(options, FILE_PATH) or "",
        _flag(options, EMBED, True),
        _entry(options, NODE_PREFIX) or "",
        not _flag(options, NO_FALLBACK, False),
        _flag(options, SHARE, False),
        _flag(options, STOP_SHARE, False),
    )


def _entry(options: Any, key: str) -> str | None:
    try:
        return options.get_session_config_entry(key)
    except (UsageError, RuntimeError):  # ONNX Runtime raises the latter for a key that is not set
        return None


def _flag(options: Any, key: str, default: bool) -> bool:
    said = _entry(options, key)
    if said is None:
        return default
    if said not in ("0", "1"):
        raise UsageError(f"{key} is {said!r}, and must be '0' or '1'")
    return said == "1"
