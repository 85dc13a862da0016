"""Readers of what a Repo says about itself, one module a kind of manifest.

Each reader has `read(tree, found)`: it looks at files through the bounded `Tree`, adds what it finds to `Findings`, and
reports what it cannot read as a warning. No reader runs anything, follows a link out of the tree, or raises on bad
input.
"""
