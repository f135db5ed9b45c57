"""What the modules that look at objects share: their result follows from an ObjectProfile, of one run or of several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tracekit.formats.events import ACCESS_EVENTS
from tracekit.modules.contract import Module
from tracekit.modules.options import make_options
from tracekit.objects.profile import ObjectProfile, as_merge_state, from_merge_state, unite

if TYPE_CHECKING:
    from tracekit.program.program import Program


class ObjectModule(Module):
    """A module of the family."""

    merges_with_program = True
    tables: ClassVar[tuple[str, ...]]
    """Those of its profiles."""
    profile: ObjectProfile
    """What was found; set when the replay is over, or profiles are joined. The result follows from it."""

    @abstractmethod
    def collected(self, state: Any) -> ObjectProfile:
        """What a finished replay found."""

    @abstractmethod
    def shown(self, profile: ObjectProfile) -> dict[str, Any]:
        """The result that follows from a profile."""

    def listed(self, profile: ObjectProfile) -> ObjectProfile:
        """What is left of a profile by options that limit what is listed."""
        return profile

    def reduce(self, states: Sequence[Any]) -> Any:
        """The one worker's; from it the profile is made."""
        (state,) = states
        self.profile = self.listed(self.collected(state))
        return state

    def ahead(self) -> Mapping[str, Callable[..., None]]:
        """All but loads and stores: objects live on from one segment to the next."""
        return {name: callback for name, callback in self.callbacks().items() if name not in ACCESS_EVENTS}

    def fold(self, first: Any, then: Any) -> Any:
        """The later one: where it began it knew all objects, and what had become of them."""
        return then

    def result(self, state: Any) -> dict[str, Any]:
        """What follows from the profile."""
        return self.shown(self.profile)

    def merge_state(self, state: Any) -> dict[str, Any]:
        """The profile's tables."""
        return as_merge_state(self.profile)

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Program | None) -> dict[str, Any]:
        """What follows from the objects of all runs."""
        assert program is not None
        module = cls(program, make_options(cls.Options, profiles[0]["options"]))
        merged = [from_merge_state(profile["evidence"], program, cls.tables) for profile in profiles]
        module.profile = module.listed(unite(merged))
        # not the module's own result and merge state: a subclass may look at a state there, and there is none
        return {"result": module.shown(module.profile), "evidence": as_merge_state(module.profile)}
