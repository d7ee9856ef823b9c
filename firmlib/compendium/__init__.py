"""What only the notebooks need: the ledger, parameters, metrics, figures."""
