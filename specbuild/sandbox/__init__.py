"""Copy-on-write sandboxes: the contract in `contract`, one module or package a backend."""
