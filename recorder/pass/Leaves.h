// Leaves.h: functions of the C library and of Fortran's that call nothing back and touch no memory that a trace tells
// of.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// Whether a function of this name is one. Where a program defines it itself, the definition is not instrumented.
bool isLeaf(llvm::StringRef Name);

/// Whether `I` calls such a function of another unit, so that no record is made before it returns.
bool callsLeaf(const llvm::Instruction &I);

/// Where a call of mathematics (`modf`, `sincos`) stores a part of its result, or one that decides when a hash table
/// grows what it decided last.
struct StoredPart {
  llvm::Value *Place;
  uint64_t Bytes;
};

/// All that a call stores, if it is one of these, which do nothing else with the pointers that they are given. The pass
/// records these stores: where clang itself calls such a function (`sincos` for a sine and a cosine), it does so in the
/// middle of a record, where the runtime must not write another one.
llvm::SmallVector<StoredPart, 2> storedParts(const llvm::CallBase &Call);

inline bool handsBackParts(const llvm::CallBase &Call) { return !storedParts(Call).empty(); }

} // namespace tracekit
