"""The inner loop of the kernel matrix, compiled by numba (the extra `fast`)."""

import numpy as np
from numba import njit, types
from numba.core import config
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise ImportError("without its compiler, numba would be slower than NumPy")

_PAIRS = 256  # sequences compared at a time, so that their bits stay in the nearest cache


@intrinsic
def _count_bits(typing, bits):
    return types.int64(types.uint64), lambda _, builder, __, args: builder.ctpop(args[0])


@njit(cache=True, nogil=True)
def _longer(match, ends, ending, common):
    """Count the matches that are left, then keep those that go on for one more letter."""
    ending += _count_bits(ends)  # type: ignore[call-arg]
    match += match
    return match, ends & match, ending, common + ending  # sum_d (D - d + 1) n_d


@njit(cache=True, nogil=True)
def add_common(x, y, own, degree, delta, K, symmetric):
    """Add delta times `kernel._common_words` to K; if symmetric, only above the diagonal."""
    match, ends = np.empty(_PAIRS, np.uint64), np.empty(_PAIRS, np.uint64)
    ending, common = np.empty(_PAIRS, np.int64), np.empty(_PAIRS, np.int64)
    for i in range(x.shape[2]):
        for first in range(i // _PAIRS * _PAIRS if symmetric else 0, y.shape[2], _PAIRS):
            pairs = range(min(_PAIRS, y.shape[2] - first))
            common[:] = 0
            for word in range(x.shape[1]):
                ending[:] = 0
                match[:] = 2**64 - 1
                for plane in range(x.shape[0]):
                    bits, others = x[plane, word, i], y[plane, word, first:]
                    for j in pairs:
                        match[j] &= bits ^ others[j]
                for j in pairs:
                    ends[j] = match[j] & own[word]
                letters, left = degree, np.uint64(1)
                while letters and left:
                    left = np.uint64(0)
                    step = 4 if letters >= 4 else 1  # four at once need not be stored between
                    for j in pairs:
                        now = _longer(match[j], ends[j], ending[j], common[j])
                        if step == 4:
                            now = _longer(*_longer(*_longer(*now)))
                        match[j], ends[j], ending[j], common[j] = now
                        left |= ends[j]
                    letters -= step
                for j in pairs:
                    common[j] += letters * ending[j]
            for j in pairs:
                K[i, first + j] += delta * common[j]
