// Atomics.h: the order of atomic operations, as events of the runtime.
#pragma once

#include "llvm/IR/Function.h"

namespace tracekit {

/// Puts calls of the runtime around the atomic operations and behind the fences of `F` that order threads. The calls
/// end blocks, so what an operation orders stands in other records than the operation.
void orderAtomics(llvm::Function &F);

/// Whether a callee is one of these functions: they do nothing to the program.
bool isOrdering(llvm::StringRef Callee);

} // namespace tracekit
