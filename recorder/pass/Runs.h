// Runs.h: inner loops whose iterations are all alike and record nothing: one record says how many ran.
#pragma once

#include "Segments.h"

#include "llvm/Analysis/ScalarEvolution.h"

namespace tracekit {

/// A loop of one path, without calls, whose addresses are all derived.
struct RunLoop {
  llvm::SmallVector<unsigned, 4> Segments; // of one iteration, the header's first
  llvm::BasicBlock *Header, *Exiting, *Exit;
  bool TestsAtHeader; // it is left from its header, which is not its latch: that visit is no iteration
  llvm::Value *Trips; // iterations, known where it is left
};

/// Finds the run loops, before segments get ground-truth words, and computes their trip counts.
std::vector<RunLoop> findRuns(const SegmentedFunction &S, const llvm::LoopInfo &LI, llvm::ScalarEvolution &SE);

} // namespace tracekit
