"""Tools for the notebooks: the ledger, parameters, metrics, figures."""
