"""Where a Repo comes from, and what can be read of it without running it."""
