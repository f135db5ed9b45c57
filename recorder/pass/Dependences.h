// Dependences.h: rows of `edges`: register and control dependences inside loops.
#pragma once

#include "Describe.h"

#include "llvm/Analysis/PostDominators.h"

namespace tracekit {

/// Appends the edges of one function whose two ends stand in a common loop; no verdict asks for others.
///
/// Register edges lead from memory operations, calls and header phis, through any other instructions, to those
/// and to branches; control edges from a branch to what it controls: operations, header phis and other branches.
void describeDependences(const SegmentedFunction &S, const FunctionRows &Rows, const llvm::LoopInfo &LI,
                         const llvm::PostDominatorTree &PDT, Unit &U);

} // namespace tracekit
