"""Physical addresses: the page frames that snapshots of `record --physical` hold, as of each access."""
