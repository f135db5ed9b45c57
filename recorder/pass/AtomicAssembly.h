// AtomicAssembly.h: atomic operations and fences that a program writes as assembly of x86.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// What a statement of assembly does to memory that threads share, as far as its text says so.
struct AtomicAssembly {
  enum { NOTHING, LOAD, STORE, UPDATE, FENCE } Does = NOTHING;
  llvm::Value *Address = nullptr; ///< null of a fence
  uint64_t Bytes = 0;             ///< 0 if the text alone says how many
  bool Acquires = false, Releases = false;
};

/// Of a statement with a `lock` prefix or an `xchg` the first operand in memory that it changes, of a single `mov` for
/// which the compiler forgets what it knows of memory ("memory") its operand, as on x86 any load acquires and any store
/// releases; `mfence` and its like. NOTHING of any other call.
AtomicAssembly atomicAssembly(const llvm::CallBase &Call);

} // namespace tracekit
