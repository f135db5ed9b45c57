"""When and where threads ran: hand-overs of their buffers, with time and processor."""
