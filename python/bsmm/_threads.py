"""Chooses the threads that do the work of calls."""
from __future__ import annotations

from . import _bsmm

_threads = 0


def set_threads(count: int) -> None:
    """Sets the number of threads for calls without the argument `threads`. 0 means all processors
    of the process.

    >>> set_threads(0)
    """
    global _threads
    if count < 0:
        raise ValueError(f"count: value is {count}; must be 0 or more")
    _threads = count


def default_threads() -> int:
    return _threads


def use_pool(run: int | None, context: int | None = None) -> None:
    """Lets the caller's threads do the work. `run` is the address of a C function of the type
    bsmm_parallel_for (bsmm.h), which must stay valid, and `context` is its first argument. If `run`
    is None, the threads of this package do the work again.

    >>> use_pool(None)
    """
    _bsmm.use_pool(run, context)
