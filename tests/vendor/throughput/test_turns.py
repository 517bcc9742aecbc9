"""Threads that share a graph get it in the order in which they asked."""

from __future__ import annotations

import threading
import time

from openqnn.vendor.throughput.turns import Turns


def test_who_waits_is_before_who_asks_again() -> None:
    turns, order = Turns(), list[str]()
    threads: list[threading.Thread] = []

    def take(name: str) -> None:
        with turns:
            order.append(name)

    with turns:
        for count, name in enumerate("bcd", start=1):
            threads.append(threading.Thread(target=take, args=(name,)))
            threads[-1].start()
            while len(turns._waiting) < count:
                time.sleep(0.001)
    take("a")
    for thread in threads:
        thread.join(timeout=10)
    assert order == ["b", "c", "d", "a"]
    take("free again")


def test_one_at_a_time() -> None:
    turns, inside, most = Turns(), list[int](), list[int]()

    def work() -> None:
        for _ in range(200):
            with turns:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(most) == 1600 and max(most) == 1
