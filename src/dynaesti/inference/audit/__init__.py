"""Importance sampling against the exact posterior."""
