// Leaves.h: functions of the C library and of Fortran's that call nothing back and touch no memory that a trace tells
// of.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// Whether a function of this name is one. Where a program defines it itself, the definition is not instrumented.
bool isLeaf(llvm::StringRef Name);

/// Whether `I` calls such a function of another unit, so that no record is made before it returns.
bool callsLeaf(const llvm::Instruction &I);

/// Whether a call is of mathematics that stores a part of its result through a pointer, and does nothing else with it:
/// `modf`, `sincos`. The recorder sees these stores (interceptors_libc.c).
bool handsBackParts(const llvm::CallBase &Call);

} // namespace tracekit
