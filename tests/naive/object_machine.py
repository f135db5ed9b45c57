"""Random runs with objects: made, freed by whomever, grown and cut in place, used again unseen; and pointers."""

from __future__ import annotations

from tests.naive.dependence_machine import Machine

HEAP = 0x5000_0000_0FC0
BIG = 1 << 15


class ObjectMachine(Machine):
    """A machine whose heap is worth looking at; ``live`` may be shared by several, as the threads of a process do."""

    live: dict[int, int]

    def _heap(self) -> None:
        for _ in range(self.random.choice([1, 1, 2, 4])):
            address = self._somewhere()
            choice = self.random.random()
            if choice < 0.35:
                self._allocate(address)
            elif choice < 0.65 and self.live:
                address = self.random.choice(sorted(self.live))
                self.log.add("heap_free", self._any_instruction(), address, self.live.pop(address))
            elif choice < 0.75 and self.live:
                self._reallocate(self.random.choice(sorted(self.live)))
            elif choice < 0.8:
                self.log.add(self.random.choice(["heap_free", "global_init"]), self.random.choice([0, 1]), address, 8)
            elif choice < 0.85:
                self.log.add("stack_alloc", self._any_instruction(), address, self.random.choice([0, 3, 8]))
            else:
                self.log.add("pointer_creation", self.random.choice([0, 1, 2]), self._pointer() % 2**64, 3)

    def _somewhere(self) -> int:
        if self.random.random() < 0.1:
            return HEAP + BIG * self.random.randrange(1, 5) - self.random.choice([0, 8])
        return HEAP + self.random.randrange(0, 96, self.random.choice([4, 16]))

    def _allocate(self, address: int) -> None:
        size = self.random.choice([0, 1, 8, 12, 16, 16, 32, 100, BIG, 2 * BIG + 5])
        if self.random.random() < 0.05:
            address = 0
        self.log.add("heap_alloc", self._any_instruction(), address, size)
        self.live[address] = size

    def _reallocate(self, address: int) -> None:
        before, size = self.live[address], self.random.choice([1, 8, 24, BIG + 3])
        self.live[address] = size
        if size > before:
            self.log.add("heap_alloc", self._any_instruction(), address + before, size - before)
        elif size < before:
            self.log.add("heap_free", self._any_instruction(), address + size, before - size)

    def _pointer(self) -> int:
        if self.random.random() < 0.2:
            return self.random.choice([0, (1 << 64) - 1, 3, HEAP - 1, self._place()[0]])
        if not self.live:
            return self._somewhere()
        address = self.random.choice(sorted(self.live))
        return address + self.random.choice([0, 0, self.live[address], self.live[address] // 2, -1, 5])
