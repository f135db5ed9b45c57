"""One file for each verb of the command line; each defines ``command``, a click.Command."""
