// Fates.h: what the optimiser has made of the source's loops that are not in the program.
#pragma once

#include "SourceLoops.h"
#include "SourceMap.h"

namespace tracekit {

/// Appends a row of loop_fates for each loop of the source that `M`, before it is instrumented, does not have, or has
/// inside a loop that it surrounds in the source.
void describeFates(llvm::Module &M, const SourceLoops &InSource, Unit &U, SourceMap &Sources);

} // namespace tracekit
