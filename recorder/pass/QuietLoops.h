// QuietLoops.h: loops in which nobody looks at the activation but the check at the header (docs/internals/pass.md,
// "Windows").
#pragma once

#include "Resumes.h"

namespace tracekit {

/// Whether it is so of the loop with this header: no loop is inside, nothing in it calls what may record, and the only
/// region that begins in it begins at the header.
bool isQuiet(const llvm::BasicBlock *Header, const SegmentedFunction &S, const Regions &Paths, const Resumes &Keep);

} // namespace tracekit
