"""The callbacks of the race detector, by what their events are about; each moves the state by kernels/."""
