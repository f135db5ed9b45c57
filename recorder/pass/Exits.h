// Exits.h: which ways out of a loop the program goes on behind, and which end it or throw.
#pragma once

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"

namespace tracekit {

using Blocks = llvm::SmallPtrSet<const llvm::BasicBlock *, 8>;

/// An edge that leaves by unwinding, or into code that ends the program or throws on all ways (a failed assertion, a
/// failed check of a container), is no ordinary exit: a run that takes it has other verdicts to worry about.
bool isOrdinaryExit(const llvm::BasicBlock *Target);

/// What stands behind a loop's other exits and nowhere else: the blocks that only those lead to, and from which the
/// function neither goes on nor returns. None if the loop has no ordinary exit: then the program ends behind it.
Blocks endingBlocks(const llvm::Loop &L);

} // namespace tracekit
