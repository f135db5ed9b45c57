"""The profiles that tables are made of: those of a profile file, or of a trace, which is analysed for what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.inputs import gather
from tracekit.profiles import files
from tracekit.profiles.profile import Profile


class Run:
    """The profiles of one file by module; those of a trace are made when they are first asked for, and kept."""

    def __init__(
        self,
        path: str,
        jobs: int | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        window: Mapping[str, Any] | None = None,
    ) -> None:
        """`path`: a trace or a profile file; `options`: module -> values of options, `window`: for a trace.

        Raises TracekitError if it is neither; a trace is opened, a profile file read.
        """
        self.path = path
        self.is_profile = files.is_profile(path)
        self._jobs = jobs
        self._options = options or {}
        self._window = window
        self._profiles: dict[str, Profile] = {}
        self.embedded: Mapping[str, bytes] = {}
        """Source files that a trace carries, and what digests of others it has (tracekit.inputs), once analysed."""
        self.digests: Mapping[str, str] = {}
        if self.is_profile:
            if self._options:
                raise TracekitError(f"{path} is a profile file: options of modules are for traces.")
            if window:
                raise TracekitError(f"{path} is a profile file: a window is chosen when the trace is analysed.")
            self._keep(files.load(path))
        else:
            from tracekit.formats.reader import TraceReader

            with TraceReader(path):
                pass

    @property
    def modules(self) -> list[str]:
        """Those whose profiles are there already."""
        return list(self._profiles)

    @property
    def cautions(self) -> list[str]:
        """Sentences that a reader has to know of the trace, as far as it was analysed."""
        return list(dict.fromkeys(caution for profile in self._profiles.values() for caution in profile.cautions))

    @property
    def is_window_empty(self) -> bool:
        """Whether a trace was analysed of which no load or store is inside the window."""
        return any(profile.accesses_inside == 0 for profile in self._profiles.values())

    def choose(self, modules: Sequence[str]) -> str | None:
        """Which of `modules` serves: the first that is there, or of a trace the first; None if there is none."""
        there = next((module for module in modules if module in self._profiles), None)
        return there if self.is_profile or there is not None else modules[0]

    def need(self, modules: Sequence[str]) -> None:
        """Have the profiles of these modules: a trace is replayed once for those that are not there."""
        from tracekit.modules import registry

        missing = [module for module in dict.fromkeys(modules) if module not in self._profiles]
        if not missing:
            return
        if self.is_profile:
            raise TracekitError(
                f"{self.path} holds no profile of {' and '.join(missing)}, only of {', '.join(self._profiles)}: "
                f"query the trace, or write one with `tracekit analyze -m {' -m '.join(missing)} -o FILE`."
            )
        for module in missing:
            registry.load(module, files=False)  # a sentence for a name that is none, before the replay
        wanted = {module: options for module, options in self._options.items() if module in missing}
        gathered = gather(self.path, missing, self._jobs, wanted, self._window)
        self.embedded, self.digests = gathered.embedded, gathered.digests
        self._keep(gathered.profiles)

    def profile(self, module: str) -> Profile:
        """The profile of a module, which is there."""
        return self._profiles[module]

    def report(self, module: str) -> dict[str, Any]:
        """Its JSON object, with the facts beside (tracekit.profiles)."""
        profile = self._profiles[module]
        return {**profile.report, "facts": profile.facts}

    def _keep(self, profiles: Sequence[Profile]) -> None:
        for profile in profiles:
            self._profiles.setdefault(profile.module, profile)
