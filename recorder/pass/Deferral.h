// Deferral.h: activations that come into memory only where somebody may look at them.
#pragma once

#include "Resumes.h"

namespace tracekit {

/// Whether the activations of `S`, which has a twin, stay in registers but at checks for room and during calls; then
/// fills in which words they have there. The function is described and not changed yet.
///
/// Most functions that this is true of call nothing on the way that most activations take: putting the activation into
/// memory and into the list at their entry, and taking it off at their return, would cost them more than what they do.
void deferActivations(const SegmentedFunction &S, const Regions &Paths, const llvm::LoopInfo &LI, Resumes &Keep);

} // namespace tracekit
