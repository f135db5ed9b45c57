// LoopText.h: the blocks of one loop as the front end has written it, and what they assign.
#pragma once

#include "ModuleTouches.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"

#include <optional>

namespace tracekit {

struct LoopText {
  /// `Order`: the function's blocks in reverse post-order.
  LoopText(const llvm::Loop &L, const llvm::DILocation &Start, const Touches &T, const ModuleTouches &Everything,
           llvm::ArrayRef<llvm::BasicBlock *> Order);

  /// What an iteration does to a variable, but for what it calls.
  RegionEffect effectOn(const ObjectTouches &Variable) const { return effectOf(Variable, *Iteration); }

  /// Whether it may store into a variable through a pointer, or call what does.
  bool mayReach(Object Variable) const {
    return CallsUnknown || mayChange(Variable, StoresElsewhere) || mayChange(Variable, Callees.StoresElsewhere);
  }

  /// Whether the loop's text, or what it calls, assigns the variable at an address; not of other memory: the run says
  /// whether that changes.
  bool isAssigned(llvm::Value *Pointer) const;

  const llvm::Loop &L;
  const llvm::DILocation &Start;
  const Touches &T;
  const ModuleTouches &Everything;
  llvm::SmallVector<llvm::BasicBlock *, 16> Blocks; // in reverse post-order, the header first
  llvm::BitVector Touched;                          // the variables of `T.Of` that the text touches
  CalleeEffect Callees;

private:
  std::optional<Region> Iteration;
  StoredTypes StoresElsewhere; // of the text itself
  bool CallsUnknown = false;
};

/// Line and column where a loop that begins at `Start` ends: its last instruction that stands in its own function and
/// file, or its closing brace.
std::pair<unsigned, unsigned> endOf(const llvm::Loop &L, const llvm::DILocation &Start);

/// The declaration of a variable; null if it has none.
const llvm::DIVariable *declarationOf(Object Variable);

} // namespace tracekit
