"""Analysis modules: the contract, the registry, the code made of callbacks, runner and scheduler, diagnostics."""
