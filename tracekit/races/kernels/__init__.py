"""Kernels of the race detector: vector clocks, what orders threads, the history of bytes.

They take a State, whose tables state.py describes, and numbers (i8 where nothing else is said). A `task` (also as
`creator`, `running`, `waiting`) is a row of `tasks`, a `chain` one of `chains`, an `epoch` one of `epochs`, a `lock`
one of `objects`, a `clock` the number of a vector clock; 0 is none of each. An `access`, or one `before` it, is a u8
as state.py packs it; `where` is the address, group, object and offset of the present one. `stream`, `context`,
`instruction`, `loop`, `address` and `size` (bytes) are as events give them.
"""
