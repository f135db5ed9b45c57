// Escapes.h: where a loop of the source is left for good, not as by `break`.
#pragma once

#include "llvm/Analysis/LoopInfo.h"

#include <vector>

namespace tracekit {

/// Line and column of the branches of which one way leaves the loop and misses what the loop's own test leads to: by
/// `return`, or for code further on. `Blocks` are the loop's, where nothing has been optimised.
std::vector<std::pair<unsigned, unsigned>> escapesOf(const llvm::Loop &L, llvm::ArrayRef<llvm::BasicBlock *> Blocks);

} // namespace tracekit
