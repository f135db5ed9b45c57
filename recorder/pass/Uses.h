// Uses.h: what surely follows from a value that is loaded.
#pragma once

#include "Describe.h"

#include "llvm/Analysis/LoopInfo.h"

namespace tracekit {

/// Sets `use` of the operations that describe() gave rows: DECIDES of loads, EMPTY of stack objects, OF_LANE of
/// accesses.
void describeUses(const SegmentedFunction &S, const FunctionRows &Rows, const llvm::LoopInfo &LI, Unit &U);

} // namespace tracekit
