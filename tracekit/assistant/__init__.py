"""What `tracekit mcp` offers to coding assistants: profiles of the runs in some folders, as tools that only read."""
