"""Failures of disks and engines, told as errors of ours with the place and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inferlake.engines.quiet import without_stack
from inferlake.errors import EngineError, InferlakeError, InputError, StoreError
from inferlake.paths import Place
from inferlake.session import Engine, is_engine_failure

# How the operating system says it; engines and deltalake pass its words on, and no code.
_NO_SPACE = "No space left on device"

# Less than this on the store's disk explains a failed write all the same.
_NEARLY_FULL = 16 * 2**20


@contextmanager
def explained(store: Place, engine: Engine, undone: str) -> Iterator[None]:
    """Turn failures inside the block into ours; `undone` says what did not happen.

    A mistake in our own code keeps its type and its traceback.
    """
    try:
        yield
    except Exception as exc:
        if not isinstance(exc, InputError) and _is_full(store, exc):
            free = store.free_bytes()
            raise StoreError(
                f"{store.address}: the disk is full, or the one for temporary files"
                f" ({free or 0:,} bytes free here now); {undone}; free some space and try again"
            ) from exc
        if isinstance(exc, InferlakeError | BrokenPipeError):
            raise  # click ends quietly when a reader of standard output had enough
        if isinstance(exc, OSError):
            raise StoreError(f"{store.address}: {undone}: {without_stack(exc)}") from exc
        if not is_engine_failure(exc):
            raise
        raise EngineError(f"{engine.name} failed; {undone}: {without_stack(exc)}") from exc


def _is_full(store: Place, exc: Exception) -> bool:
    if _NO_SPACE in str(exc):
        return True
    if not (isinstance(exc, OSError) or is_engine_failure(exc)):
        return False
    free = store.free_bytes()
    return free is not None and free < _NEARLY_FULL
