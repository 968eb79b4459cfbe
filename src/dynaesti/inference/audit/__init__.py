"""Audit of a curve: importance sampling against the exact posterior."""
