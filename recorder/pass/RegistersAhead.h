// RegistersAhead.h: which registers of an activation are still read.
#pragma once

#include "Segments.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace tracekit {

/// Of one function, which is described and not changed yet.
class RegistersAhead {
public:
  explicit RegistersAhead(const SegmentedFunction &S);

  /// Those that are read from where segment `K` begins on, before they are defined again. Asked for before the function
  /// changes.
  llvm::BitVector from(unsigned K) const;

private:
  llvm::BitVector from(const llvm::BasicBlock &BB, unsigned K) const;

  const SegmentedFunction &S;
  llvm::DenseMap<const llvm::BasicBlock *, llvm::BitVector> Read; // from the beginning of a basic block on
};

} // namespace tracekit
