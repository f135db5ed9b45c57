// Scalars.h: local variables in registers, where nothing has been optimised.
#pragma once

#include "llvm/ADT/SmallVector.h"

namespace llvm {
class AllocaInst;
class Function;
class Type;
} // namespace llvm

namespace tracekit {

/// The local variables of a function that lie in its frame.
llvm::SmallVector<llvm::AllocaInst *, 16> localsOf(llvm::Function &F);

/// The one value that a type holds, if it does: that of an iterator's class is a pointer. Null otherwise.
llvm::Type *onlyValueOf(llvm::Type *Declared);

/// At -O0 every local lives in memory, and every i++ would be a dependence carried by memory: puts those of one value
/// whose address goes nowhere into registers. Not where setjmp is called: unoptimised code may rely on locals in
/// memory.
void promoteScalars(llvm::Function &F);

} // namespace tracekit
