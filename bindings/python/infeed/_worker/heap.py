"""What glibc's malloc keeps of the memory that samples leave."""

from __future__ import annotations

import functools

_LARGEST_HEAP_BLOCK = (32 << 20) - (64 << 10)  # of glibc's malloc, with room for headers


@functools.cache
def keep_freed_memory() -> None:
    """Lets malloc keep up to 64 MiB of what a sample or a batch's samples leave, for the next ones.

    glibc gives back what is free at the top of its heap beyond twice the largest block that it has ever unmapped. A
    process that has unmapped none of 32 MiB pays for its samples' memory by page faults, again and again.
    """
    bytes(_LARGEST_HEAP_BLOCK)  # intentional: made by calloc, never touched, unmapped
