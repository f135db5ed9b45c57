"""`tracekit top`: loops, their source and their dependences side by side in a terminal."""
