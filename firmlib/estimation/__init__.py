"""What follows from sums in bins: V = Var q_f and all of its uncertainty."""
