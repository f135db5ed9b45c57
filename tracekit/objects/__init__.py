"""Live objects and their identities, allocation sites, and the profiles that speak of objects."""
