// References.h: names of the source for numbers that lie elsewhere: references of C++, dummy arguments of Fortran.
//
// OpenMP's reductions take them as they take a variable.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Value.h"

namespace tracekit {

/// The reference or dummy argument whose number lies at an address, as unoptimised code computes it; of Fortran also as
/// optimised code does. Null if there is none.
const llvm::DILocalVariable *referenceAt(const llvm::Value *Address);

/// The reference to a number that a local variable of unoptimised code holds; null if it holds none.
const llvm::DILocalVariable *referenceIn(const llvm::Value *Variable);

/// Whether a dummy argument may be absent: its function asks for that.
bool isOptional(const llvm::Value &Address);

} // namespace tracekit
