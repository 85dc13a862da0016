"""Benchmarks: `python -m bench NAME`. Every figure in README and docs comes from one of them."""
