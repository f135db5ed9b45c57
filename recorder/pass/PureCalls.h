// PureCalls.h: calls that change nothing, where nothing has been optimised.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// Whether a call, and all that it calls, stores at most into its own variables, and reads nothing that is volatile or
/// atomic. What is defined elsewhere does so if the front end says that it reads memory at most.
bool changesNothing(const llvm::CallBase &Call);

} // namespace tracekit
