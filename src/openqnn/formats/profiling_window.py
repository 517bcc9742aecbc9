"""Which executions of a graph are profiled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """From so many seconds on, so many executions; None for all that follow."""

    delay: float = 0.0
    executions: int | None = None

    def over(self, other: Window) -> Window:
        """This window, where it says something, and the other one where it does not."""
        executions = other.executions if self.executions is None else self.executions
        return Window(self.delay or other.delay, executions)
