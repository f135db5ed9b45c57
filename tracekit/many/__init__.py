"""Many traces, analysed in processes beside one another, and their profiles merged."""
