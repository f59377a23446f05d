"""A cube thrown onto a table, to learn contact from."""
