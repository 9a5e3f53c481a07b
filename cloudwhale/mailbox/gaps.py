"""Gaps in a log: the mark that stands where output was left out, and how a reader counts it.

A place in a log is a number of bytes of the job's output, those that were left out included; so a
chunk and the whole log are counted alike though they leave out different parts. Output that
prints such a mark itself is counted as if it were one: a reader then shows too little of it.
"""

import re

_MARK = re.compile(rb"\n\[cloudwhale: (\d+) bytes of output were left out here\]\n")


def left_out(count: int) -> bytes:
    """Return the mark for a number of bytes."""
    return f"\n[cloudwhale: {count} bytes of output were left out here]\n".encode()


def stands_for(chunk: bytes) -> int:
    """Return how many bytes of output a chunk stands for; a gap can only lie before it."""
    mark = _MARK.match(chunk)
    return len(chunk) if mark is None else len(chunk) - mark.end() + int(mark[1])


def after(whole: bytes, place: int) -> bytes:
    """Return what a whole log has after a place; what was left out after it is marked."""
    begins, passed = 0, 0
    for mark in _MARK.finditer(whole):
        length = mark.start() - begins
        if place <= passed + length:
            break
        begins, passed = mark.end(), passed + length + int(mark[1])
        if place < passed:
            return left_out(passed - place) + whole[begins:]
    return whole[begins + place - passed :]
