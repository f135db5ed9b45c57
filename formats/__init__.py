"""What the bytes of a trace mean: tables, columns, container, reader and writer."""
