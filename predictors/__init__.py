"""Predictors: which Failure is coming, from what is known before and while a Step runs.

One module a kind of evidence.
"""
