"""Loops compiled by numba: what `firmlib._grid`, `_scored` and `strings.kernel` do in NumPy.

Machine code is kept beside this file, or where numba keeps it if that cannot be written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_BLOCK = 1024  # rows whose cells are found together
_TILE = 64  # rows that stay near while their columns are copied
_PAIRS = 256  # of sequences compared together; what is known of them stays in the nearest cache
_ONE = np.float64(1).view(np.uint64)
_FLOATS = types.Array(types.float64, 1, "C", readonly=True)
_WEIGHTS = types.Array(types.float64, 1, "A", readonly=True)  # one number may stand for all
_CODES = types.Array(types.int32, 1, "C", readonly=True)
_GRID = types.UniTuple(types.float64, 4)
_VALUES = types.Array(types.float64, 1, "C")
_FLAGS = types.Array(types.boolean, 1, "C", readonly=True)
_PLACES = types.Array(types.intp, 1, "C")
_RUNS = types.Array(types.int32, 1, "C")
_TABLE = types.Array(types.float64, 2, "C")
_PLANES = types.Array(types.uint64, 3, "C", readonly=True)
_BITS = types.Array(types.uint64, 1, "C", readonly=True)
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def _add_to_row(typing: Any, table: Any, row: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Add four numbers to a row of a table (n, 4), in one instruction where there is one."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        four = ir.VectorType(ir.DoubleType(), 4)
        first = builder.mul(args[1], ir.Constant(args[1].type, 4))
        place = builder.bitcast(builder.gep(data, [first]), four.as_pointer())
        more = ir.Constant(four, ir.Undefined)
        for k, number in enumerate(args[2:]):
            more = builder.insert_element(more, number, ir.Constant(ir.IntType(32), k))
        builder.store(builder.fadd(builder.load(place, align=8), more), place, align=8)
        return context.get_dummy_value()

    return types.void(table, row, a, b, c, d), code


_add: Any = intrinsic(_add_to_row)


def _popcount(typing: Any, bits: Any) -> Any:
    """Count the bits that are 1."""
    return types.int64(types.uint64), lambda _, builder, __, args: builder.ctpop(args[0])


_count_bits: Any = intrinsic(_popcount)


@njit(**_OPTIONS)
def _cells(f, grid, cells, found):
    """Find `Grid.cell` of some values."""
    centre, unit, low, scale = grid
    last, inverse = cells - 1.0, 1 / unit
    for i in range(len(f)):
        x = f[i]
        if unit:
            y = (x - centre) * inverse
            bits = np.float64(1 + abs(y)).view(np.uint64) - _ONE  # faster than signed ones
            x = np.copysign(np.float64(bits) * 2.0**-52, y)
        place = (x - low) * scale
        place = place if place > 0.0 else 0.0
        found[i] = np.int32(place if place < last else last)


@njit(_RUNS(_FLOATS, _GRID, types.intp), **_OPTIONS)
def count(f, grid, cells):
    """Return how many values lie in each cell."""
    n, cell = np.zeros((2, cells), np.int32), np.empty(_BLOCK, np.uint32)
    for start in range(0, len(f), _BLOCK):
        block = f[start : start + _BLOCK]
        _cells(block, grid, cells, cell)
        for i in range(len(block)):
            n[i & 1, cell[i]] += 1  # so that a row need not wait for the one before
    return n[0] + n[1]


@njit(_VALUES(_FLOATS, _FLOATS, _GRID, types.intp), **_OPTIONS)
def weigh(f, w, grid, cells):
    """Return the weight in each cell."""
    n, cell = np.zeros(cells), np.empty(_BLOCK, np.uint32)
    for start in range(0, len(f), _BLOCK):
        block = f[start : start + _BLOCK]
        _cells(block, grid, cells, cell)
        for i in range(len(block)):
            n[cell[i]] += w[start + i]
    return n


@njit(types.Tuple((_PLACES, _RUNS))(_FLOATS, _FLOATS, types.float64), **_OPTIONS)
def runs(n, edges, nudge):
    """Find `Cells.runs`."""
    first, run = np.zeros(len(edges) + 1, np.intp), np.empty(len(n), np.int32)
    ends = (edges - nudge) * (2 * n.sum())
    before, k, edge = 0.0, 0, 0
    for i in range(len(n)):
        if n[i] > 0:
            before += n[i]
            new = False
            while edge < len(ends) and ends[edge] <= 2 * before - n[i]:
                edge, new = edge + 1, True
            if new and i > 0:
                k += 1
                first[k] = i
        run[i] = k
    return first[: k + 1], run


@njit(types.void(_FLOATS, _FLOATS, _WEIGHTS, _GRID, _TABLE), **_OPTIONS)
def sweep(f, r, w, grid, table):
    """Add the rows to sums of w, w r, w r^2 and w f in each cell."""
    cell = np.empty(_BLOCK, np.uint32)
    for start in range(0, len(f), _BLOCK):
        block = f[start : start + _BLOCK]
        _cells(block, grid, len(table), cell)
        for i in range(len(block)):
            wi, ri = w[start + i], r[start + i]
            _add(table, np.intp(cell[i]), wi, wi * ri, wi * ri * ri, wi * block[i])


@njit(**_OPTIONS)
def _tally(table, index, f, r, w, first):
    """Add the rows to sums in bins, of four numbers or, with lines within bins, of eight."""
    lines = table.shape[1] == 8
    for i in range(len(f)):
        k, wi, wr = np.intp(index[i]), w[i], w[i] * r[i]
        if lines:
            g = f[i] - first[k]
            _add(table, 2 * k, wi, wr, wr * r[i], wi * f[i])
            _add(table, 2 * k + 1, wr * r[i] * r[i], g * g * wi, wr * g, wi * g)
        else:
            _add(table, k, wi, wr, wr * r[i], wi * f[i])


@njit(**_OPTIONS)
def _in_turn(index, ways):
    """Let rows go in turn to so many rows of a table for each bin.

    Where many rows in turn lie in one bin, each would wait for the sums of the one before.
    """
    for i in range(len(index) if ways > 1 else 0):
        index[i] = index[i] * ways + (i & (ways - 1))


@njit(**_OPTIONS)
def _added(table, ways):
    """Return the sums of so many rows of a table each."""
    if ways == 1:
        return table
    found = np.zeros((len(table) // ways, table.shape[1]))
    for i in range(len(table)):
        found[i // ways] += table[i]
    return found


@njit(
    _TABLE(_FLOATS, _FLOATS, _WEIGHTS, _GRID, _CODES, _FLOATS, types.intp, types.intp), **_OPTIONS
)
def sweep_bins(f, r, w, grid, bin_of_cell, first, numbers, ways):
    """Return so many sums, four or eight, in the bins that begin at these values, by cell.

    They are made in so many ways, 1, 2, 4, … (of eight sums 1), and added up in the end.
    """
    table, cell = np.zeros((len(first) * ways, numbers)), np.empty(_BLOCK, np.uint32)
    for start in range(0, len(f), _BLOCK):
        block = f[start : start + _BLOCK]
        _cells(block, grid, len(bin_of_cell), cell)
        for i in range(len(block)):
            cell[i] = bin_of_cell[cell[i]]
        _in_turn(cell, ways)
        _tally(table, cell, block, r[start:], w[start:], first)
    return _added(table, ways)


@njit(
    types.Tuple((_TABLE, types.boolean))(
        _FLOATS, _FLOATS, _WEIGHTS, types.float64, types.float64, _CODES, _FLOATS, types.intp
    ),
    **_OPTIONS,
)
def search(f, r, w, low, scale, before, first, numbers):
    """Return the same sums by `Bins.cells`, and whether all values are first values."""
    ways, cell, known = 4 if numbers == 4 else 1, np.empty(_BLOCK, np.uint32), True
    table = np.zeros((len(first) * ways, numbers))
    for start in range(0, len(f), _BLOCK):
        block = f[start : start + _BLOCK]
        _cells(block, (0.0, 0.0, low, scale), len(before), cell)
        for i in range(len(block)):
            k = before[cell[i]]
            while k < len(first) and block[i] >= first[k]:  # never a missing one, which is the last
                k += 1
            cell[i] = k - 1 if k > 0 else 0
            known &= first[cell[i]] == block[i]
        _in_turn(cell, ways)
        _tally(table, cell, block, r[start:], w[start:], first)
    return _added(table, ways), known


@njit(types.intp(_FLOATS, types.float64, types.float64), **_OPTIONS)
def beyond(f, low, high):
    """Return how many values do not lie from one to another."""
    n = 0
    for i in range(len(f)):
        n += (f[i] < low) | (f[i] > high)
    return n


@njit(_TABLE(_TABLE, _CODES), **_OPTIONS)
def gathered(table, bin_of_cell):
    """Return the sums in each bin from those in each cell."""
    found = np.zeros((bin_of_cell[-1] + 1, 4))
    for i in range(len(table)):
        _add(found, np.intp(bin_of_cell[i]), table[i, 0], table[i, 1], table[i, 2], table[i, 3])
    return found


@njit(types.Tuple((_VALUES, types.boolean))(_FLOATS, _GRID, _FLAGS), **_OPTIONS)
def values(f, grid, full):
    """Return the value in each full cell, and whether there is but one in each."""
    found, cell = np.full(len(full), np.nan), np.empty(_BLOCK, np.uint32)
    for start in range(0, len(f), _BLOCK):
        block, new = f[start : start + _BLOCK], False
        _cells(block, grid, len(full), cell)
        for i in range(len(block)):
            new |= full[cell[i]] & (found[cell[i]] != block[i])
        for i in range(len(block) if new else 0):  # soon seldom; alone, it would be guessed wrong
            if full[cell[i]]:
                if np.isnan(found[cell[i]]):
                    found[cell[i]] = block[i]
                elif found[cell[i]] != block[i]:
                    return found, False
    return found, True


@njit(_TABLE(_CODES, _FLOATS, _FLOATS, _WEIGHTS, _FLOATS, types.intp), **_OPTIONS)
def sums(index, f, r, w, first, numbers):
    """Return so many sums in the bins that begin at these values, by the bin of each row."""
    table = np.zeros((len(first), numbers))
    _tally(table, index, f, r, w, first)
    return table


@njit(**_OPTIONS)
def _ordered(bits):
    """Return the bits of a float as a number that grows with it, and the other way round.

    A missing value lies beyond the infinite ones.
    """
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@njit(**_OPTIONS)
def transposed(X, out):
    """Copy a few columns of a table by rows, so that each lies together in memory.

    Return their ends: least and largest values, found on the way as whole numbers, for these are
    compared many at a time.
    """
    ends = np.empty((X.shape[1], 2), np.int64)
    ends[:, 0], ends[:, 1] = 2**63 - 1, -(2**63)
    for start in range(0, len(X), _TILE):
        end = min(len(X), start + _TILE)
        for j in range(X.shape[1]):
            for i in range(start, end):
                out[j, i] = X[i, j]
            bits, low, high = out[j, start:end].view(np.int64), ends[j, 0], ends[j, 1]
            for i in range(len(bits)):
                key = _ordered(bits[i])
                low, high = min(low, key), max(high, key)
            ends[j, 0], ends[j, 1] = low, high
    for j in range(X.shape[1]):
        for k in range(2):
            ends[j, k] = _ordered(ends[j, k])
    return ends.view(np.float64)


@njit(**_OPTIONS)
def _longer(match, ends, ending, common):
    """Count the matches of so many letters, then go on with those that have one letter more."""
    ending += _count_bits(ends)
    match += match
    return match, ends & match, ending, common + ending


_KERNEL = types.void(_PLANES, _PLANES, _BITS, types.intp, types.float64, _TABLE, types.boolean)


@njit(_KERNEL, **_OPTIONS)
def add_common(x, y, own, degree, delta, K, symmetric):
    """Add delta times `kernel._common_words` to K; if symmetric, from the diagonal on.

    sum_d (D - d + 1) n_d is the sum over d of n_1 + ... + n_d: no products are needed.
    """
    n_planes, n_words, n = x.shape
    match, ends = np.empty(_PAIRS, np.uint64), np.empty(_PAIRS, np.uint64)
    ending, common = np.empty(_PAIRS, np.int64), np.empty(_PAIRS, np.int64)
    for i in range(n):
        for first in range(i // _PAIRS * _PAIRS if symmetric else 0, y.shape[2], _PAIRS):
            pairs = range(min(_PAIRS, y.shape[2] - first))
            common[:] = 0
            for word in range(n_words):
                ending[:] = 0
                match[:] = 2**64 - 1
                for plane in range(n_planes):
                    bits, others = x[plane, word, i], y[plane, word, first:]
                    for j in pairs:
                        match[j] &= bits ^ others[j]
                for j in pairs:
                    ends[j] = match[j] & own[word]
                letters, left = degree, np.uint64(1)
                while letters and left:
                    left = np.uint64(0)
                    if letters >= 4:  # four at once: what is between need not be stored
                        for j in pairs:
                            now = match[j], ends[j], ending[j], common[j]
                            now = _longer(*_longer(*_longer(*_longer(*now))))
                            match[j], ends[j], ending[j], common[j] = now
                            left |= ends[j]
                        letters -= 4
                    else:
                        for j in pairs:
                            now = _longer(match[j], ends[j], ending[j], common[j])
                            match[j], ends[j], ending[j], common[j] = now
                            left |= ends[j]
                        letters -= 1
                for j in pairs:
                    common[j] += letters * ending[j]
            for j in pairs:
                K[i, first + j] += delta * common[j]
