// LoopText.h: the blocks of one loop as the front end has written it, and what they assign.
#pragma once

#include "ModuleTouches.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace tracekit {

struct LoopText {
  /// `Order`: the function's blocks in reverse post-order.
  LoopText(const llvm::Loop &L, const llvm::DILocation &Start, const Touches &T, const ModuleTouches &Everything,
           llvm::ArrayRef<llvm::BasicBlock *> Order);

  /// What an iteration does to a variable, but for what it calls.
  RegionEffect effectOn(const ObjectTouches &Variable) const { return effectOf(Variable, Blocks, Latches); }

  /// Whether the loop's text, or what it calls, assigns the variable at an address; not of other memory: the run says
  /// whether that changes.
  bool isAssigned(llvm::Value *Pointer) const;

  const llvm::Loop &L;
  const llvm::DILocation &Start;
  const Touches &T;
  const ModuleTouches &Everything;
  llvm::SmallVector<llvm::BasicBlock *, 16> Blocks; // in reverse post-order, the header first
  llvm::SmallVector<llvm::BasicBlock *, 4> Latches;
  CalleeEffect Callees;
};

/// Line and column where a loop that begins at `Start` ends: its last instruction that stands in its own function and
/// file, or its closing brace.
std::pair<unsigned, unsigned> endOf(const llvm::Loop &L, const llvm::DILocation &Start);

/// The declaration of a variable; null if it has none.
const llvm::DIVariable *declarationOf(Object Variable);

} // namespace tracekit
