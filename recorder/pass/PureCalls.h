// PureCalls.h: calls that change nothing, where nothing has been optimised.
#pragma once

#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace tracekit {

/// Whether a call, and all that it calls, stores at most into its own variables, and reads nothing that is volatile or
/// atomic. What is defined elsewhere does so if the front end says that it reads memory at most.
bool changesNothing(const llvm::CallBase &Call);

/// Notes of functions whose results are compared whether they change nothing, while that can still be seen: what they
/// are instrumented with writes.
void markPureFunctions(llvm::Module &M);
void dropPureMarks(llvm::Module &M);

/// Whether an instruction is a call of a function with such a note, or of one that the compiler knows to read at most.
bool isPureCall(const llvm::Instruction &I);

} // namespace tracekit
