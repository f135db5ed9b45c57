"""Messages between the processes of a parallel run: sends matched with receives, collective operations."""
