// Iterators.h: iterators of C++'s standard library that count a loop's iterations, where nothing has been optimised.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

#include <optional>

namespace tracekit {

/// A comparison, as in a loop's head.
struct Comparison {
  llvm::Value *Left, *Right; // what is compared; of iterators their addresses
  bool IsEquality;
  bool IsOfIterators;
};

/// What a branch's condition compares, integers, pointers or iterators, by an operator of the source.
std::optional<Comparison> comparisonOf(llvm::Value *Condition);

/// Whether a local variable is an iterator over what lies in memory in one piece: of std::vector, std::string,
/// std::span. OpenMP wants iterators whose distance is known at once.
bool isContiguousIterator(const llvm::AllocaInst &Variable);

/// How a call steps the iterator whose address is its first argument.
struct IteratorStep {
  llvm::Value *Distance = nullptr; // null: one
  bool IsUp = true;
};

std::optional<IteratorStep> stepOf(const llvm::CallBase &Call);

/// Whether a loop reads a variable, and only `Step` changes it there; no address of it is kept anywhere.
bool isChangedOnlyBy(const llvm::CallBase &Step, llvm::AllocaInst &Variable,
                     llvm::function_ref<bool(const llvm::BasicBlock *)> IsInLoop);

} // namespace tracekit
