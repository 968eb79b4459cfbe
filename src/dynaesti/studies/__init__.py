"""The paper's studies, each by one function: its numbers beside ours, and its figures."""
