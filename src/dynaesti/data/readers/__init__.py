"""Readers: frames, columns, dicts and files to one `Table`."""
