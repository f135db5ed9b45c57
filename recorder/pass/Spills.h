// Spills.h: variables that lie in memory because calls read them there.
#pragma once

#include "llvm/IR/Function.h"

namespace tracekit {

/// Makes variables whose addresses go into calls that only read them (`rows.push_back(i)`) ready for registers: such a
/// call finds the value in memory, where it is put before the call. An `i++` behind the call would be a dependence that
/// memory carries otherwise. Not where setjmp is called.
void spillBeforeCalls(llvm::Function &F);

} // namespace tracekit
