// Attributes.h: which functions are instrumented, and what stops being true of functions once they are.
#pragma once

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"

namespace tracekit {

/// Whether `F` gets instrumentation.
bool isInstrumented(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

/// Gives a function the attributes of `F`, but makes it one of the module's own.
void makeInternalLike(llvm::Function &Own, llvm::Function &F);

/// Drops, from all functions and calls, the promises that instrumentation breaks. A function that writes records
/// writes memory: a `memory(...)` left in place would let later passes keep the position across its calls.
void dropBrokenAttributes(llvm::Module &M);

} // namespace tracekit
