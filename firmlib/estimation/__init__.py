"""Estimate V = Var q_f and its uncertainty from sums in bins."""
