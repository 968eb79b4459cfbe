"""The command line: `main` finds the verb, each verb is a small file that says its options and does one thing."""
