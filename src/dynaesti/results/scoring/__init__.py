"""Learners' states: what a platform keeps of each, and what can be asked of it."""
