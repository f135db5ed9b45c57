// Unset.h: variables that a loop's body declares and does not set on every path.
//
// The optimiser, and this project at -O0, keeps such a variable in a register, and where an iteration does not set it
// that register has what the iteration before left there. In the source each iteration has a variable of its own.
#pragma once

#include "LoopText.h"

#include "llvm/ADT/SmallVector.h"

namespace tracekit {

struct SourceLoop;

/// The local variables that the loop's body declares, and that an iteration may read before it sets them.
llvm::SmallVector<const llvm::DILocalVariable *, 1> unsetVariables(const LoopText &Text);

/// Whether a header phi hands on nothing but what such a variable of the loop held in the iteration before: to read
/// that there is undefined behaviour.
bool isUnset(const llvm::PHINode &Phi, const llvm::Loop &L, const SourceLoop &Source);

} // namespace tracekit
