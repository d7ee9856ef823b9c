"""Checks of input; every message names the argument, the value and what was expected."""

import inspect
import math
import warnings
from collections.abc import Collection, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

MEMORY_LIMIT = 8 * 2**30  # bytes above which an array is refused before it is allocated


def short(values: Sequence, most: int = 5) -> str:
    """Show the first `most` of some values in a message."""
    return f"[{', '.join(map(repr, values[:most]))}{', …' * (len(values) > most)}]"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("firmlib."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_option(name: str, value: object, options: Collection[object]) -> None:
    """Raise unless `value` is one of `options`."""
    if value not in options:
        raise ValueError(f"{name}={value!r} is unknown; expected one of {[*options]}")


def as_numpy(value: Any) -> Any:
    """Return a torch tensor on any device as an array, and anything else unchanged."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether `value` is an integer of Python or NumPy, not a truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_array(value: Any) -> bool:
    """Return whether `value` has a length and is no model, which may have one, too."""
    return hasattr(value, "__len__") and not hasattr(value, "fit") and not callable(value)


def check_array(name: str, value: ArrayLike, ndim: int, shape: tuple | None = None) -> np.ndarray:
    """Return `value` as a finite float array with `ndim` axes; None in `shape` means any length."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must not be masked, got {np.ma.count_masked(value)} masked")
    try:
        array = np.asarray(as_numpy(value))
        if array.dtype.kind in "mMc":  # NumPy would drop units and imaginary parts
            raise TypeError(f"{array.dtype} values")
        array = array.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError) as e:
        raise ValueError(f"{name} must hold numbers, got {type(value).__name__}: {e}") from e
    check_shape(name, array.shape, shape or (None,) * ndim)
    if array.size == 0:
        raise ValueError(f"{name} is empty: its shape is {array.shape}")
    refuse(f"{name} must be finite", ~np.isfinite(array), array, "NaN or inf")
    return array


def refuse(message: str, bad: np.ndarray, values: np.ndarray, what: str) -> None:
    """Raise if some values are bad; show the first of them."""
    if bad.any():
        row = f" at row {', '.join(map(str, np.argwhere(bad)[0]))}" if bad.ndim else ""
        raise ValueError(f"{message}, got {bad.sum()} {what}, the first {values[bad][0]}{row}")


def check_shape(name: str, shape: tuple, expected: tuple) -> None:
    """Raise unless a shape is as expected; None means any length."""
    fits = [size in (None, found) for size, found in zip(expected, shape, strict=False)]
    if len(shape) != len(expected) or not all(fits):
        sizes = tuple("any" if size is None else size for size in expected)
        raise ValueError(f"{name} has shape {shape}, expected {sizes}")


def check_number(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, inside: bool = False
) -> float:
    """Return `value` as a finite number from `low` to `high`, or `inside` of these limits."""
    number = isinstance(value, float | np.floating) or is_integer(value)
    fits = number and np.isfinite(float(value)) and low <= value <= high
    if not fits or (inside and value in (low, high)):
        limits = f"above {low:g} and below {high:g}" if inside else f"from {low:g} to {high:g}"
        limits = limits.replace(" and below inf", "").replace(" to inf", "")
        raise ValueError(f"{name} must be a finite number {limits}, got {value!r}")
    return float(value)


def check_integer(name: str, value: Any, low: int, high: float | None = None) -> int:
    """Return `value` as an int from `low` to `high`."""
    if not is_integer(value) or value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {limits}, got {value!r}")
    return int(value)


def check_probability(name: str, value: ArrayLike) -> np.ndarray:
    """Return `value` as a float array of any shape with entries in [0, 1]."""
    array = check_array(name, value, np.ndim(value))
    refuse(f"{name} must lie in [0, 1]", (array < 0) | (array > 1), array, "outside")
    return array


def check_weights(name: str, value: ArrayLike | None, n: int, *, zeros: bool = False) -> np.ndarray:
    """Return `n` non-negative weights; all may be 0 only if `zeros`. None means all ones."""
    weights = check_array(name, np.ones(n) if value is None else value, 1, (n,))
    refuse(f"{name} must not be negative", weights < 0, weights, "negative weights")
    if not zeros and not weights.any():
        raise ValueError(f"{name} must not all be zero")
    return weights


def check_memory(name: str, shape: tuple[int, ...], itemsize: int = 8) -> None:
    """Raise before an array of `shape` that would take more than `MEMORY_LIMIT` is allocated."""
    gib, most = itemsize * math.prod(map(int, shape)) / 2**30, MEMORY_LIMIT / 2**30
    if gib > most:
        raise ValueError(f"{name} of shape {shape} would take {gib:.1f} GiB, above {most:.0f}")
