"""From source code to a trace: the compiler pass, its driver, the runtime and the collector."""
