// Lending.h: whether a call keeps an address that it is given, where nothing has been optimised.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// Whether the address that `Call` is given as argument `Number` may be found again when the call is over: stored
/// anywhere but in the callee's own variables, returned, or given to code that is not known.
bool keepsAddress(const llvm::CallBase &Call, unsigned Number);

} // namespace tracekit
