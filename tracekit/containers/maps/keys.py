"""Keys of one or more words: what an author writes, as words; words, as a tag that says where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers.kernels.hash_table import GOLDEN
from tracekit.jit.kernel import Instruction, Late, inlined

types: Any = Late("numba.core.types")
errors: Any = Late("numba.core.errors")
ir: Any = Late("llvmlite.ir")

UNGOLDEN = np.uint64(pow(int(GOLDEN), -1, 1 << 64))
OFFSET = np.uint64(0xD1B54A32D192ED03)
FOLD = np.uint64(32)
ONE = np.uint64(1)


def _types_of_words(key: Any, words: int) -> list[Any]:
    """Numba's types of the words that `key` is made of. Raises TypingError if they are not `words` integers."""
    given = list(key) if isinstance(key, types.BaseTuple) else [key]
    if isinstance(key, types.Array):
        if key.ndim != 1:
            raise errors.TypingError("A map's key is one row, not a table of them.")
        given = [key.dtype] * words
    given = [types.unliteral(word) for word in given]
    if len(given) != words:
        raise errors.TypingError(f"The map's keys have {words} words, this one has {len(given)}.")
    if not all(isinstance(word, (types.Integer, types.Boolean)) for word in given):
        raise errors.TypingError(f"The words of a map's key are integers, not {', '.join(map(str, given))}.")
    return given


def _words_of(typing: Any, sample: Any, key: Any) -> Any:
    given = _types_of_words(key, sample.count)
    result = types.UniTuple(types.uint64, sample.count)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[1]
        if isinstance(key, types.Array):
            row = context.make_array(key)(context, builder, value)
            start = builder.bitcast(row.data, ir.IntType(8).as_pointer())
            step = builder.extract_value(row.strides, 0)
            kind = context.get_data_type(key.dtype).as_pointer()
            places = [
                builder.bitcast(builder.gep(start, [builder.mul(step, step.type(i))]), kind)
                for i in range(sample.count)
            ]
            words = [builder.load(place) for place in places]
        elif isinstance(key, types.BaseTuple):
            words = [builder.extract_value(value, i) for i in range(sample.count)]
        else:
            words = [value]
        cast = [context.cast(builder, word, kind, types.uint64) for word, kind in zip(words, given, strict=True)]
        return context.make_tuple(builder, result, cast)

    return result(sample, key), generate


if TYPE_CHECKING:

    def words_of(sample: Any, key: Any) -> Any:
        """The words of `key` (an integer, a tuple, or a row of an array) as a tuple of uint64, as long as `sample`."""
else:
    words_of = Instruction(_words_of)


@inlined
def tag_of(sample: Any, words: Any, first: Any) -> Any:
    """The tag of the key that begins at ``words[first]``: its upper bits say where in a table it belongs.

    A tag of a single word is that word, mixed so that it can be undone: equal tags are equal keys, and one key (an
    unlikely one, for the sake of speed) has the tag 0. Consecutive words come to lie as far apart as they can. Tags of
    several words are a hash of them, never 0.
    """
    if len(sample) == 1:
        return words[first] * GOLDEN + OFFSET
    mixed = words[first] * GOLDEN
    for i in range(1, len(sample)):
        mixed = ((mixed >> FOLD) ^ mixed ^ words[first + np.uint64(i)]) * GOLDEN
    return mixed | ONE


@inlined
def key_of_tag(tag: Any) -> Any:
    """The single word whose tag this is."""
    return (tag - OFFSET) * UNGOLDEN
