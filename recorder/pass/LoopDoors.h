// LoopDoors.h: where the doors of loops without calls are (Twins.h).
#pragma once

#include "Segments.h"

namespace tracekit {

/// Control may go over into the other body at the beginning of the block `At`.
struct LoopDoor {
  const llvm::BasicBlock *At;
  const llvm::BasicBlock *Before;             // inside the same loop, from which control comes
  const llvm::BasicBlock *Entering = nullptr; // of a loop's header: the block before the loop
};

/// Doors of the loops whose iterations pass no door of a call's, and may take long.
llvm::SmallVector<LoopDoor, 4> loopDoors(const SegmentedFunction &S, const llvm::DominatorTree &DT,
                                         const llvm::LoopInfo &LI);

} // namespace tracekit
