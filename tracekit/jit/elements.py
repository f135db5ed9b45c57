"""The place of an array's element in memory, from the address and the shape alone.

Numba copies all that describes an array into memory, and reads from there what it needs, for each element that a
function names. That is most of what a function's intermediate code consists of, and all of it is arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, dispatcher, types  # noqa: F401  (numba.core.compiler wants the dispatcher first)
from numba.np import arrayobj

_cgutils: Any = cgutils
_arrays: Any = arrayobj
_unliteral: Any = types.unliteral
_NUMBERS: Any = (types.Integer, types.Float, types.Boolean)
_INTEGER: Any = types.Integer
_RECORD: Any = types.Record
_TUPLE: Any = types.BaseTuple


def is_element(array: Any, index: Any) -> bool:
    """Whether these types mean one number or record of an array that lies in one piece."""
    if not isinstance(array, types.Array) or array.layout != "C" or not isinstance(array.dtype, (*_NUMBERS, _RECORD)):
        return False
    return len(_types_of(index)) == array.ndim and all(isinstance(each, _INTEGER) for each in _types_of(index))


def is_number_for(array: Any, value: Any) -> bool:
    """Whether a value of this type is stored by a cast to that of the array's elements."""
    return isinstance(array.dtype, _NUMBERS) and isinstance(value, _NUMBERS)


def place_of(context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any) -> Any:
    """A pointer to the element; checked, where that was asked for, as Numba does it."""
    model = context.data_model_manager[array_type]
    data, shape = (builder.extract_value(array, model.get_field_position(name)) for name in ("data", "shape"))
    extents = [builder.extract_value(shape, axis) for axis in range(array_type.ndim)]
    given = _cgutils.unpack_tuple(builder, index) if isinstance(index_type, _TUPLE) else [index]
    indices = []
    for axis, (kind, each) in enumerate(zip(_types_of(index_type), given)):
        fixed = _arrays.fix_integer_index(context, builder, kind, each, extents[axis])
        if context.enable_boundscheck:
            _cgutils.do_boundscheck(context, builder, fixed, extents[axis], axis)
        indices.append(fixed)
    if array_type.ndim == 1:
        return builder.gep(data, indices)
    return _cgutils.get_item_pointer2(context, builder, data, extents, (), "C", indices)


def _types_of(index: Any) -> Sequence[Any]:
    given = tuple(index) if isinstance(index, _TUPLE) else (index,)
    return [_unliteral(each) for each in given]
