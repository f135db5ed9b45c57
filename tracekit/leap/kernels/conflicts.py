"""How many loads of a descriptor find what stores of others have stored: integer solutions, no member is looked at.

Of a store's descriptor with the points s + k * ds (0 <= k < n) and a load's with l + m * dl (0 <= m < c) a load m is a
*conflict* if for one k object and offset are the same and the store's time is before (Wu et al., CGO 2004, section
4.2.1). Those m are an arithmetic progression: both equations have one solution, or the strides are parallel, and then
extended Euclid gives all. Time is linear along it, so what comes too early is one end of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.leap.kernels.compressor import common_divisor

LARGE = 1 << 31
"""Strides from here on are not multiplied: such a descriptor has few members."""
RESIDUES = 4096
"""Up to this common multiple of their steps progressions are united exactly."""

Int = Any


@kernel
def conflicts(store: Any, load: Any, found: Any) -> int:
    """The progression of the load's members that conflict, in found[0 .. 2] (first, step, count); returns the count.

    store, load: rows of POINT, the descriptors; found (3) i8. (Wu et al., CGO 2004, section 4.2.1.)
    """
    found[0] = 0
    found[1] = 1
    found[2] = 0
    store_moves = store.count > 1 and (store.object_stride != 0 or store.offset_stride != 0)
    load_moves = load.count > 1 and (load.object_stride != 0 or load.offset_stride != 0)
    if not store_moves:
        if not load_moves:
            if store.object == load.object and store.offset == load.offset:
                _later(load, store.time, found)
        else:
            m = _member(load, store.object, store.offset)
            if m >= 0 and store.time < load.time + load.time_stride * m:
                _one(m, found)
    elif not load_moves:
        k = _member(store, load.object, load.offset)
        if k >= 0:
            _later(load, store.time + store.time_stride * k, found)
    elif store.object_stride * load.offset_stride == load.object_stride * store.offset_stride:
        _parallel(store, load, found)
    else:
        _crossing(store, load, found)
    return int(found[2])


@inlined
def _one(m: Any, found: Any) -> None:
    found[0] = m
    found[1] = 1
    found[2] = 1


@inlined
def _later(load: Any, time: Any, found: Any) -> None:
    """The members of a load that stays at its place after a time."""
    first = np.int64(0)
    if load.time <= time:
        first = load.count
        if load.time_stride > 0:
            first = (time - load.time) // load.time_stride + 1
    if first < load.count:
        found[0] = first
        found[1] = 1
        found[2] = load.count - first


@inlined
def _member(row: Any, object: Any, offset: Any) -> Any:
    """Which member of a descriptor that moves is at a place; -1 if none is."""
    far, stride = object - row.object, row.object_stride
    if stride == 0:
        far, stride = offset - row.offset, row.offset_stride
    k = far // stride
    if k * stride != far or k < 0 or k >= row.count:
        return np.int64(-1)
    if row.object + k * row.object_stride != object or row.offset + k * row.offset_stride != offset:
        return np.int64(-1)
    return k


@inlined
def _crossing(store: Any, load: Any, found: Any) -> None:
    """The strides are not parallel: at most one place is common (Cramer's rule)."""
    determinant = load.object_stride * store.offset_stride - store.object_stride * load.offset_stride
    objects, offsets = load.object - store.object, load.offset - store.offset
    m = store.object_stride * offsets - store.offset_stride * objects
    if m % determinant == 0:
        m = m // determinant
        if 0 <= m < load.count:
            place, byte = load.object + m * load.object_stride, load.offset + m * load.offset_stride
            k = _member(store, place, byte)
            if k >= 0 and store.time + store.time_stride * k < load.time + load.time_stride * m:
                _one(m, found)


@kernel
def _parallel(store: Any, load: Any, found: Any) -> None:
    """The strides are parallel: along one coordinate, one equation in integers."""
    ds, dl, apart = store.object_stride, load.object_stride, load.object - store.object
    if ds == 0:
        ds, dl, apart = store.offset_stride, load.offset_stride, load.offset - store.offset
    # ds * k - dl * m = apart; all solutions are k0 + q * t, m0 + p * t
    if ds == dl:  # most: both walk through the same array
        if apart % ds != 0:
            return
        p, q, k0, m0 = np.int64(1), np.int64(1), np.int64(0), -(apart // ds)
    elif abs(ds) >= LARGE or abs(dl) >= LARGE:
        _few(store, load, found)
        return
    else:
        divisor = np.int64(common_divisor(ds, dl))
        if apart % divisor != 0:
            return
        p, q = ds // divisor, dl // divisor
        k0 = (apart // divisor % abs(q)) * _inverse(p % abs(q), abs(q)) % abs(q)
        m0 = (p * k0 - apart // divisor) // q
    low, high = _range(k0, q, store.count)
    others = _range(m0, p, load.count)
    low, high = max(low, others[0]), min(high, others[1])
    if low > high:
        return
    k, m = k0 + q * low, m0 + p * low
    if store.object + k * store.object_stride != load.object + m * load.object_stride:
        return
    if store.offset + k * store.offset_stride != load.offset + m * load.offset_stride:
        return
    low, high = _in_time(store, load, k0, q, m0, p, low, high)
    if low <= high:
        found[0] = min(m0 + p * low, m0 + p * high)
        found[1] = abs(p)
        found[2] = high - low + 1


@inlined
def _range(start: Any, step: Any, count: Any) -> Any:
    """The first and the last t for which 0 <= start + step * t < count."""
    if step == 1:
        return -start, count - 1 - start
    if step < 0:
        start, step = count - 1 - start, -step
    return -(start // step), (count - 1 - start) // step


@inlined
def _inverse(number: Any, modulus: Any) -> Any:
    """What times `number` is 1 modulo `modulus` (extended Euclid); 0 if the modulus is 1."""
    old, new = np.int64(0), np.int64(1)
    rest, next_rest = modulus, number
    while next_rest != 0:
        quotient = rest // next_rest
        old, new = new, old - quotient * new
        rest, next_rest = next_rest, rest - quotient * next_rest
    return old % modulus


@inlined
def _is_later(store: Any, load: Any, k: Any, m: Any) -> Any:
    return store.time + store.time_stride * k < load.time + load.time_stride * m


@inlined
def _in_time(store: Any, load: Any, k0: Any, q: Any, m0: Any, p: Any, low: Any, high: Any) -> Any:
    """The part of low .. high where the store comes first: one end of it, for both times are linear."""
    at_low = _is_later(store, load, k0 + q * low, m0 + p * low)
    at_high = _is_later(store, load, k0 + q * high, m0 + p * high)
    if at_low and at_high:
        return low, high
    if not at_low and not at_high:
        return low, low - 1
    good, bad = (low, high) if at_low else (high, low)
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        if _is_later(store, load, k0 + q * middle, m0 + p * middle):
            good = middle
        else:
            bad = middle
    return (low, good) if at_low else (good, high)


@kernel
def _few(store: Any, load: Any, found: Any) -> None:
    """Strides of gigabytes: the first and the last conflict of few members, taken for all of them if they are two."""
    for m in range(load.count):
        k = _member(store, load.object + m * load.object_stride, load.offset + m * load.offset_stride)
        if k >= 0 and _is_later(store, load, k, m):
            if found[2] == 0:
                found[0] = m
            elif found[2] == 1:
                found[1] = m - found[0]
            found[2] += 1


@kernel
def united(progressions: Any, count: Int, most: Int, low: Any, high: Any) -> int:
    """How many numbers are in one of `count` progressions (first, step, count) below `most`.

    progressions (at least count, 3) i8; low, high (at least count) i8: room. Exact if the steps have a common
    multiple up to RESIDUES, else an upper bound.
    """
    if count == 1:
        return int(progressions[0, 2])
    common, total = np.int64(1), np.int64(0)
    for row in range(count):
        total += progressions[row, 2]
        step = progressions[row, 1]
        if progressions[row, 2] > 1 and common <= RESIDUES:
            common = common // common_divisor(common, step) * step
    if common > RESIDUES:
        return int(min(total, most))
    union = np.int64(0)
    for residue in range(common):
        used = np.int64(0)
        for row in range(count):
            first, step, members = progressions[row]
            if members == 1:
                step = common
            if (residue - first) % step == 0:
                start = first + (residue - first) % common
                last = first + step * (members - 1)
                if start <= last:
                    _insert(low, high, used, start // common, (last - residue) // common)
                    used += 1
        union += _covered(low, high, used)
    return int(union)


@inlined
def _insert(low: Any, high: Any, used: Any, first: Any, last: Any) -> None:
    """An interval in its place, by its beginning."""
    place = used
    while place > 0 and low[place - 1] > first:
        low[place] = low[place - 1]
        high[place] = high[place - 1]
        place -= 1
    low[place] = first
    high[place] = last


@inlined
def _covered(low: Any, high: Any, used: Any) -> Any:
    """How many numbers are in one of the intervals."""
    total, end = np.int64(0), np.int64(-1)
    for row in range(used):
        if high[row] > end:
            total += high[row] - max(low[row] - 1, end)
            end = high[row]
    return total


@kernel
def stream_conflicts(
    points: Any, bounds: Any, stores: Any, loads: Any, progressions: Any, found: Any, low: Any, high: Any
) -> int:
    """Loads points[loads[0] .. loads[1] - 1] that conflict with a store of points[stores[0] .. stores[1] - 1].

    points: the descriptors of all streams, those of each in the order of time; bounds (points, 6) i8: the least and the
    greatest object, offset and time of each. progressions (n, 3), found (3), low (n), high (n) i8: room, with n at
    least the descriptors that a stream has at most.
    """
    total = np.int64(0)
    for load in range(loads[0], loads[1]):
        count = np.int64(0)
        first_object, last_object, first_offset, last_offset, _, until = bounds[load]
        for store in range(stores[0], stores[1]):
            if bounds[store, 4] >= until:  # so are those behind it: descriptors stand in the order of time
                break
            if bounds[store, 1] < first_object or bounds[store, 0] > last_object:
                continue
            if bounds[store, 3] < first_offset or bounds[store, 2] > last_offset:
                continue
            if conflicts(points[store], points[load], found) > 0:
                progressions[count, 0] = found[0]
                progressions[count, 1] = found[1]
                progressions[count, 2] = found[2]
                count += 1
        if count > 0:
            total += united(progressions, count, points[load].count, low, high)
    return int(total)


@kernel
def group_conflicts(
    streams: Any, points: Any, bounds: Any, pairs: Any, room: Any, found: Any, low: Any, high: Any
) -> None:
    """Add to `pairs` (key: store << 32 | load, as accesses) the conflicts in each group, as loads of the whole run.

    streams (SUMMARY): ascending by group, in it stores before loads; the others: see `stream_conflicts`. Conflicts of
    the loads that descriptors have stand for those of all loads of the stream.
    """
    first = 0
    while first < streams.size:
        behind = first
        while behind < streams.size and streams[behind].group == streams[first].group:
            behind += 1
        for store in range(first, behind):
            if streams[store].access & 1 == 0:
                break
            for load in range(behind - 1, first - 1, -1):
                if streams[load].access & 1 != 0:
                    break
                if _may_meet(streams[store], streams[load]):
                    captured = streams[load].captured
                    count = stream_conflicts(
                        points, bounds, streams[store].points, streams[load].points, room, found, low, high
                    )
                    if count > 0:
                        key = (np.uint64(streams[store].access) << np.uint64(32)) | np.uint64(streams[load].access)
                        row = row_of(pairs, key)
                        pairs.rows[row].conflicts += count / captured * streams[load].accesses
        first = behind


@inlined
def _may_meet(store: Any, load: Any) -> Any:
    return (
        store.low[0] <= load.high[0]
        and load.low[0] <= store.high[0]
        and store.low[1] <= load.high[1]
        and load.low[1] <= store.high[1]
        and store.low[2] < load.high[2]
    )
