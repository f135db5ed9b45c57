"""Path profiles: what is counted of a trace's records, and what rows are made of it."""
