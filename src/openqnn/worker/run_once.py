"""Run a function in a child process, so that a crash or a hang of it becomes one message.

The child serves one task and ends. Where this process can be copied, the child is a copy of it, and nothing
has to travel but the answer; arrays of the inferences stay in the child, which reads and writes files itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openqnn.worker.child import Child
from openqnn.worker.messages import Failed, Task


def run_once(
    function: Callable[..., Any],
    *arguments: Any,
    name: str,
    fork: bool,
    timeout: float | None = None,
    note: Callable[[str], None] | None = None,
    log: Callable[[str], None] | None = None,
    opening: float | None = None,
    waiting: Child | None = None,
) -> Any:
    """`function(*arguments, reporter=...)` in a child process; `name` is who is to blame when it dies.

    `fork` says that the child may be a copy of this process. `note` hears the lines that the child has for
    the user, `log` what was printed in the child. `opening` is another time limit, which ends when the child
    is ready to work. A child that is `waiting` does the task, and ends like any other.
    """
    task = Task(function, arguments)
    forked = waiting is None and fork
    child, done = waiting or Child(task if forked else None), False
    try:
        if forked:
            answer = child.answer(name, timeout, note, opening, note)
        else:
            answer = child.ask(task, name, timeout, note, opening, note)
        done = True
    finally:
        if log is not None:
            log(child.log)
        child.end(wait=not done)
    if isinstance(answer, Failed):
        raise answer.error
    return answer.value
