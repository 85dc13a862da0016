"""Where root filesystems come from: one module a provider, found by name."""
