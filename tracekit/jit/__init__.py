"""How kernels are compiled and cached: decorators, outlined callees, caches on disk. Knows nothing of traces."""
