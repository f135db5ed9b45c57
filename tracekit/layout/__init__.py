"""Layout of data: which fields of structures are used together, and what another layout would save."""
