"""Verification: no model judges. Runners write machine-readable reports, readers count them."""
