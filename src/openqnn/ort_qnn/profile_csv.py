"""The CSV file that the QNN provider writes where profiling is on, with what the library measured."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from openqnn.errors import OutputError
from openqnn.qnn.profile import EVENT_NAMES, ProfileEvent, Unit

HEADER = (
    "Msg Timestamp", "Message", "Time", "Unit of Measurement", "Timing Source", "Event Level",
    "Event Identifier",
)  # fmt: skip
_UNITS = {
    Unit.MICROSECONDS: "US",
    Unit.BYTES: "BYTES",
    Unit.CYCLES: "CYCLES",
    Unit.COUNT: "COUNT",
    Unit.OBJECT: "OBJECT",
    Unit.NONE: "",
}


def append_profile(path: str, events: Sequence[ProfileEvent]) -> None:
    """Rows are added to a file that is there already, as the provider does."""
    file = Path(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not file.exists():
        writer.writerow(HEADER)
    writer.writerows(row for event in events for row in _rows(event, "ROOT", time.time_ns() // 1000))
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(text.getvalue())
    except OSError as error:
        raise OutputError(f"cannot write the profile to {file}: {error.strerror}") from error


def _rows(event: ProfileEvent, level: str, now: int) -> Iterator[tuple[object, ...]]:
    unit = _UNITS.get(event.unit, "") if event.unit is not None else ""
    stamp = event.timestamp or now
    message = EVENT_NAMES.get(event.type, "BACKEND")
    yield stamp, message, event.value, unit, "BACKEND", level, event.identifier
    for child in event.children:
        yield from _rows(child, "SUB-EVENT", now)
