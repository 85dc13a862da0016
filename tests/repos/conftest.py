"""Golden repositories are read by tests, not collected as tests."""

collect_ignore_glob = ["*"]
