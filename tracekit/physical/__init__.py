"""Physical addresses: the page frames that snapshots of `record --physical` hold, as of each access."""

VIRTUAL, PHYSICAL = "virtual", "physical"
"""Whose lines simulators touch: values of their option `addresses`."""
