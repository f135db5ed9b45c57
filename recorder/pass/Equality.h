// Equality.h: whether two registers of one iteration hold the same value, where nothing has been optimised.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

namespace tracekit {

/// What phis take, summed up, the same for twins: in an interpreter there are hundreds that take hundreds of values
/// each.
class PhiSums {
public:
  uint64_t of(const llvm::PHINode &Phi);

private:
  llvm::DenseMap<const llvm::PHINode *, uint64_t> Sums;
};

/// Compares what is computed in one iteration of a loop, or without one in an activation: unoptimised code computes and
/// loads the same value again.
class Equality {
public:
  Equality(const llvm::Loop *L, const llvm::DominatorTree &DT) : L(L), DT(&DT) {}

  /// Whether two values are surely the same: computed alike, from loads and calls that no write can have told apart.
  bool equal(const llvm::Value *A, const llvm::Value *B, unsigned Depth = 0) const;

  /// Whether two values are the same in each iteration, whatever loops hand on: the optimiser keeps a variable in two
  /// registers where it does not see that they are one.
  static bool areTwins(const llvm::Value *A, const llvm::Value *B, PhiSums &Sums);

  /// Whether, behind `First` and as far as `Then` in the same iteration, nothing can have changed what is at `Pointer`,
  /// or any memory if it is null.
  bool isUntouched(const llvm::Value *Pointer, const llvm::Instruction &First, const llvm::Instruction &Then) const;

  /// Whether an instruction may change what is at `Pointer`, or any memory if it is null.
  static bool mayChange(const llvm::Instruction &I, const llvm::Value *Pointer);

private:
  bool contains(const llvm::BasicBlock *BB) const { return !L || L->contains(BB); }

  const llvm::Loop *L;
  const llvm::DominatorTree *DT;
};

} // namespace tracekit
