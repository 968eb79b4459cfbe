"""Layouts: tables of other shapes to one row an answer, answer keys, and choices of items."""
