"""Numbers below which a difference is rounding, each with its reason."""

EMPTY = 1e-300
"""Divides where there is nothing, such as in a bin without rows; the quotient is not used."""

ROUNDING = 1e-12
"""A share of what it could be at most, of a sum of many products; below it is rounding, and 0."""

SOLVED = 1e-9
"""A share of an importance below which a difference is rounding: groups solve linear equations."""

NUDGE = 1e-9
"""Three times 1/3 of a row are one row, whatever their sum was rounded to."""
