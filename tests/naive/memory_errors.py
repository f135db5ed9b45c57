"""The slow, obvious reference of the module ``memory_errors``: a dict from bytes to states."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.naive.dependence import Path, StreamState
from tests.naive.objects import GLOBAL, HEAP, STACK, NaiveObjects, Object, Site
from tracekit.memory_errors.kernels import checks
from tracekit.memory_errors.libraries import OPENMP, OPENMP_GIVES, RELEASED, STREAM_INPUT, STREAM_OUTPUT

UNKNOWN, WRITTEN, UNWRITTEN, BESIDE = "unknown", "written", "unwritten", "beside"

Place = tuple[int, Path]
"""Instruction and context."""
Freed = tuple[Site, Place]
Key = tuple[str, Place, Site, Place | None]


class NaiveMemoryErrors(NaiveObjects):
    """``found``: what the module's errors are -> how often; ``parts``: sizes and offsets of each occurrence."""

    def __init__(
        self,
        program: Any,
        fresh: frozenset[int],
        rules: Any,
        family: Any,
        blind: Any,
        flags: tuple[int, int],
        named: Any = None,
    ) -> None:
        super().__init__(program, fresh)
        self.rules, self.family, self.blind = rules, family, blind
        self.atomics, self.rounded = flags
        self.named = named
        self.variables = {} if named is None else dict(enumerate(zip(named.low.tolist(), named.high.tolist())))
        self.states: dict[int, Any] = {}
        self.found: Counter[Key] = Counter()
        self.parts: defaultdict[Key, set[tuple[int, int, int]]] = defaultdict(set)
        self.undecided: Counter[str] = Counter()
        self.births = 0
        self.unknown_at = 0
        self.numbers_of: dict[Object, int] = {}
        self.last_copy: dict[int, tuple[int, int, int]] = {}
        self.doubt: Counter[int] = Counter()
        self.hosted: Counter[int] = Counter()
        self.threads = 0
        self.handlers = False

    def rule(self, instruction: int, bit: int) -> bool:
        return bool(int(self.rules[min(instruction, len(self.rules) - 1)]) & bit)

    def state(self, address: int) -> Any:
        return self.states.get(address, UNKNOWN)

    def assign(self, address: int, size: int, state: Any) -> None:
        for byte in range(address, address + size):
            self.states[byte] = state

    def replace(self, address: int, size: int, old: Any, new: Any) -> None:
        for byte in range(address, address + size):
            if self.state(byte) == old:
                self.states[byte] = new

    def ordered(self) -> bool:
        return not self.handlers and (self.threads == 0 or not self.atomics)

    def owner(self, address: int) -> Object | None:
        here = self.bytes.get(address)
        return here if here is not None and here.alive else None

    def event(self, number: int, stream: StreamState, name: str, subject: int, address: int, size: int) -> None:
        place = min(subject, len(self.program.ops)), stream.context
        if name in ("load", "store"):
            self.access(number, place, address, size, name == "store")
        elif name == "heap_alloc":
            self.allocated(number, stream, subject, address, size)
        elif name == "heap_free":
            self.freed(number, place, address, size)
        elif name in ("stack_alloc", "global_init"):
            self.begin(number, stream, name, subject, address, size)
            self.born(address)
            if name == "stack_alloc" and self.named is not None and self.named.of_local[place[0]]:
                self.variables[int(self.named.of_local[place[0]])] = address, address + size
            has_value = name == "global_init" or not self.rule(subject, checks.EMPTY)
            self.assign(address, size, WRITTEN if has_value else UNWRITTEN)
        elif name == "stack_free":
            self.end(number, address, 0)
            self.assign(address, size, UNKNOWN)
        elif name == "external_call":
            if self.rule(subject, checks.OPAQUE):
                self.unknown_at = self.births
        elif name == "thread_create":
            self.threads += 1
        elif name == "thread_exit":
            self.threads -= 1
        elif name == "signal_enter":
            self.handlers = True
        else:
            self.doubts(number, name, subject, size)
            super().event(number, stream, name, subject, address, size)

    def doubts(self, number: int, name: str, function: int, call: int) -> None:
        if name == "function_entry":
            called_back = call < len(self.rules) and self.rule(call, checks.CALLS_BACK)
            self.hosted[number] += bool(self.hosted[number] or called_back)
        elif name == "function_exit" and self.hosted[number]:
            self.hosted[number] -= 1
        if name == "function_entry" and call < len(self.rules) and self.rule(call, checks.HOSTS):
            self.unknown_at = self.births
            self.doubt[number] = max(self.doubt[number], 1)
        elif name == "function_entry" and (self.doubt[number] or self.blind[function]):
            self.doubt[number] += 1
        elif name == "function_exit" and self.doubt[number]:
            self.doubt[number] -= 1
            self.unknown_at = self.births

    def born(self, address: int) -> None:
        owner = self.owner(address)
        if owner is not None and owner.site[0] != GLOBAL:
            self.births += 1
            self.numbers_of[owner] = self.births

    def note(self, kind: str, place: Place, site: Site, freed: Place | None, part: tuple[int, int, int]) -> None:
        self.found[kind, place, site, freed] += 1
        self.parts[kind, place, site, freed].add(part)

    # -- objects -----------------------------------------------------------------------------------

    def allocated(self, number: int, stream: StreamState, subject: int, address: int, size: int) -> None:
        if address == 0:
            return
        grows = self.growing(subject, address, size)
        bare = grows is not None and grows.start == address
        if bare:
            self.replace(address - 8, 40, BESIDE, UNKNOWN)
        self.begin(number, stream, "heap_alloc", subject, address, size)
        if not grows:
            self.born(address)
        block = grows or self.bytes[address]
        is_empty = self.rule(subject, checks.EMPTY) and not self.hosted[number]
        self.assign(address, size, UNWRITTEN if is_empty else WRITTEN)
        if bare or self.rule(subject, checks.PACKED):
            if self.rounded:
                self.forget_freed(block.end, block.end + min(block.end - block.start, checks.MOST_SPARE) + 32)
            return
        if self.rule(subject, checks.MAPS):
            return
        chunk = (max(block.end - block.start, 24) + 8 + 15) // 16 * 16
        if self.rounded:
            self.forget_freed(block.end, block.start + chunk + 8)
        else:
            self.forget_freed(block.end, block.start + chunk)
            self.forget_freed(block.start - 8, block.start)
            self.replace(block.end, max(block.start + chunk - block.end, 0), UNKNOWN, BESIDE)
            self.replace(block.start - 8, 8, UNKNOWN, BESIDE)

    def forget_freed(self, start: int, end: int) -> None:
        for byte in range(start, end):
            if isinstance(self.state(byte), tuple):
                self.states[byte] = UNKNOWN

    def freed(self, number: int, place: Place, address: int, size: int) -> None:
        row, owner = place[0], self.owner(address)
        if owner is None:
            if self.rule(row, checks.MAPS) or address == 0:
                return
            state = self.state(address)
            if isinstance(state, tuple):
                self.wrong("double_free", place, state[0], state[1], (0, -1, -1))
            else:
                self.undecided["unseen_allocation"] += 1
            return
        start, end, site = owner.start, owner.end, owner.site
        is_tail = start != address and size > 0 and address + size == end
        if site[0] != HEAP or not (start == address or is_tail):
            if self.rule(row, checks.PACKED):
                self.undecided["unseen_allocation"] += 1
            elif not self.rule(row, checks.MAPS):
                self.wrong("invalid_free", place, site, None, (0, address - start, end - start))
            return
        if not is_tail and self.family[row] and self.family[site[1]] not in (0, self.family[row]):
            self.wrong("mismatched_free", place, site, None, (0, 0, end - start))
        maps = self.rule(row, checks.MAPS) or self.rule(site[1], checks.MAPS)
        self.end(number, address, size)
        known = not maps and end - start < checks.LARGE and not (is_tail and self.rounded)
        self.assign(address, end - address, (site, place) if known else UNKNOWN)

    def wrong(self, kind: str, place: Place, site: Site, freed: Place | None, part: tuple[int, int, int]) -> None:
        if self.ordered():
            self.note(kind, place, site, freed, part)
        else:
            self.undecided["unknown_order"] += 1

    # -- accesses ----------------------------------------------------------------------------------

    def access(self, number: int, place: Place, address: int, size: int, store: bool) -> None:
        if size == 0:
            return
        row = place[0]
        first = self.rule(row, checks.FIRST)
        bulk = self.rule(row, checks.BULK)
        looked = 1 if first else size
        owner = self.owner(address)
        asked = self.rounded and owner is not None and owner.site[0] == HEAP
        if bulk and not asked and owner is not None and owner.start <= address < owner.end < address + looked:
            self.outside(place, owner, address, looked, store)
        elif left := self.left_variable(row, address, looked):
            self.outside(place, left, address, looked, store)
        elif not self.rule(row, checks.NAMED):
            self.beside_or_freed(place, address, looked, store)
        if self.rule(row, checks.COPIES):
            self.copy(number, row, address, size, store)
        elif store or self.rule(row, checks.SORTS):
            self.replace(address, size, UNWRITTEN, WRITTEN)
        elif self.rule(row, checks.DECIDES | checks.STRICT | checks.FIRST):
            self.unwritten(number, place, address, looked)

    def group(self, owner: Object | None) -> int:
        if owner is None or owner.site[0] not in (STACK, GLOBAL):
            return 0
        groups = self.named.of_local if owner.site[0] == STACK else self.named.of_global
        return int(groups[owner.site[1]]) if owner.site[1] < len(groups) else 0

    def left_variable(self, row: int, address: int, size: int) -> Object | None:
        """The variable that an access by its name has left."""
        group = 0 if self.named is None else int(self.named.of_access[row])
        low, high = self.variables.get(group, (0, 0))
        if not group or low <= address <= address + size <= high:
            return None
        owner = self.owner(address)
        if owner is not None and self.group(owner) == group:
            self.variables[group] = owner.start, owner.end
            return owner if address + size > owner.end else None
        own = self.owner(low)
        if own is None or self.group(own) != group or own.start != low:
            return None
        return own if owner is not None or address not in self.bytes else None

    def outside(self, place: Place, owner: Object, address: int, size: int, store: bool) -> None:
        if not self.ordered():
            self.undecided["unknown_order"] += 1
            return
        kind = "write_out_of_bounds" if store else "read_out_of_bounds"
        self.note(kind, place, owner.site, None, (size, address - owner.start, owner.end - owner.start))

    def beside_or_freed(self, place: Place, address: int, size: int, store: bool) -> None:
        for byte in range(address, address + size):
            state = self.state(byte)
            if isinstance(state, tuple):
                if self.ordered():
                    kind = "write_after_free" if store else "read_after_free"
                    self.note(kind, place, state[0], state[1], (size, -1, -1))
                else:
                    self.undecided["unknown_order"] += 1
                return
            if state == BESIDE:
                near = [*(byte - distance for distance in range(41)), *(byte + distance for distance in range(1, 9))]
                for other in near:
                    owner = self.owner(other)
                    if owner is not None and owner.site[0] == HEAP:
                        self.outside(place, owner, address, size, store)
                        return
                return

    def copy(self, number: int, row: int, address: int, size: int, store: bool) -> None:
        if not store:
            self.last_copy[number] = row, address, size
            return
        known, source, bytes_ = self.last_copy.pop(number, (-1, 0, 0))
        if known == row and bytes_ == size and self.has_states(source):
            states = [self.state(source + place) for place in range(size)]
            for place, state in enumerate(states):
                if self.state(address + place) in (WRITTEN, UNWRITTEN):
                    self.states[address + place] = UNWRITTEN if state == UNWRITTEN else WRITTEN
        else:
            self.replace(address, size, UNWRITTEN, WRITTEN)

    def has_states(self, address: int) -> bool:
        owner = self.owner(address)
        return owner is not None and self.numbers_of.get(owner, 0) > self.unknown_at

    def unwritten(self, number: int, place: Place, address: int, size: int) -> None:
        bytes_ = [byte for byte in range(address, address + size) if self.state(byte) == UNWRITTEN]
        if not bytes_:
            return
        if self.rule(place[0], checks.DECIDES) and len(bytes_) < size:
            self.undecided["partly_written"] += 1
        elif not self.ordered():
            self.undecided["unknown_order"] += 1
        elif self.doubt[number] or self.hosted[number] or not self.has_states(bytes_[0]):
            self.undecided["unknown_effects"] += 1
        else:
            owner = self.bytes[bytes_[0]]
            part = (size, bytes_[0] - owner.start, owner.end - owner.start)
            self.note("unwritten_read", place, owner.site, None, part)

    def left(self) -> Counter[tuple[Site, int]]:
        """Heap blocks that live: site, bytes -> how many; none of the system's mappings, nor of the C library's own."""
        return Counter((each.site, each.end - each.start) for each in self.blocks() if each not in self.of_libc())

    def released(self) -> Counter[tuple[Site, int]]:
        """The C library's own, which it frees."""
        return Counter((each.site, each.end - each.start) for each in self.of_libc())

    def blocks(self) -> list[Object]:
        return [
            each
            for each in self.all
            if each.alive and each.site[0] == HEAP and not self.rule(each.site[1], checks.MAPS)
        ]

    def of_libc(self) -> list[Object]:
        """Those that C's library and OpenMP's made, and the first of a stream's output and input like stdio's."""
        found = []
        for each in self.blocks():
            name = self.callee(each)
            if name in RELEASED or (any(name.startswith(of) for of in OPENMP) and name not in OPENMP_GIVES):
                found.append(each)
        for prefixes in (STREAM_OUTPUT, STREAM_INPUT):
            for each in self.blocks():
                if self.callee(each).startswith(prefixes) and each.end - each.start in [1 << k for k in range(10, 40)]:
                    found.append(each)
                    break
        return found

    def callee(self, block: Object) -> str:
        instruction = block.site[1]
        if instruction >= len(self.program.ops):
            return ""
        call = int(self.program.ops["base"][instruction])
        return self.program.text(int(self.program.calls["callee"][call])) if call < len(self.program.calls) else ""
