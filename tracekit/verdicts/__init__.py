"""From dependences to verdicts.

Which loops are parallel, by which transformations, in which pipeline stages, with which OpenMP directive.
"""
