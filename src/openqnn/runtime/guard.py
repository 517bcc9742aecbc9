"""Run a function in a child process, so that a crash or a hang of a vendor library becomes one message.

The child serves one task and ends. Where this process can be copied, the child is a copy of it, and nothing
has to travel but the answer; arrays of the inferences stay in the child, which reads and writes files itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openqnn.qnn.child import Child, can_fork
from openqnn.qnn.messages import Failed, Task


def guarded(
    function: Callable[..., Any],
    *arguments: Any,
    name: str,
    timeout: float | None = None,
    note: Callable[[str], None] | None = None,
    log: Callable[[str], None] | None = None,
    opening: float | None = None,
    waiting: Child | None = None,
) -> Any:
    """`function(*arguments, reporter=...)` in a child process; `name` is who is to blame when it dies.

    `note` hears the lines that the child has for the user, `log` what the libraries printed and logged.
    `opening` is another time limit, which ends when the libraries are ready to work. A child that is
    `waiting` does the task, and ends like any other.
    """
    task = Task(function, arguments)
    forked = waiting is None and can_fork()
    child, done = waiting or Child(task if forked else None), False
    try:
        if forked:
            answer = child.answer(name, timeout, note, opening)
        else:
            answer = child.ask(task, name, timeout, note, opening)
        done = True
    finally:
        if log is not None:
            log(child.log)
        child.end(wait=not done)
    if isinstance(answer, Failed):
        raise answer.error
    return answer.value
