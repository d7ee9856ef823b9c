"""What the notebooks need and the math does not: the ledger, parameters, metrics, figures."""
