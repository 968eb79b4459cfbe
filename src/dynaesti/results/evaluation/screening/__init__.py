"""Items that behave differently by group or date: DIF and drift of all items by score tests."""
