// Resumes.h: what an activation keeps in memory, so that a window may open in the middle of it (docs/internals/pass.md,
// "Windows").
#pragma once

#include "Describe.h"
#include "Emit.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tracekit {

/// Words of an activation in memory (runtime/state.h, struct tk_activation).
enum : unsigned { ActivationBelow, ActivationLayout, ActivationSelf, ActivationPath, ActivationFrame, ActivationWords };

/// Where each thing stands in an activation of one function.
struct Resumes {
  uint64_t FirstPath = 0; // number of the path that resumes the activation behind segment 0
  unsigned Registers = 0, Objects = 0;
  llvm::MapVector<const llvm::BasicBlock *, unsigned> LoopOf; // by header: the loop's number in the function
  llvm::DenseMap<const llvm::BasicBlock *, llvm::DenseSet<const llvm::BasicBlock *>> Latches; // by header
  llvm::MapVector<const Operation *, unsigned> ObjectOf;                                      // a STACK_ALLOC's number
  /// Headers of loops whose iterations are kept, because addresses depend on them. Of others they count from 0 where a
  /// window opens.
  llvm::SetVector<const llvm::BasicBlock *> Counted;
  bool IsDeferred = false;                             // Deferral.h
  std::vector<llvm::SmallVector<unsigned, 8>> WordsAt; // then, by segment: what holds where it begins
  llvm::GlobalVariable *Layout = nullptr;
  llvm::GlobalVariable *Armed = nullptr; // the byte that the clean body tests (Twins.h); null: there is none

  unsigned registerAt(Row Register) const { return ActivationWords + Register; }
  unsigned loopAt(unsigned Counted) const { return ActivationWords + Registers + Counted; }
  /// Address and size; no size: it is not alive.
  unsigned objectAt(unsigned Object) const { return loopAt(Counted.size()) + 2 * Object; }
  /// Whether control that comes to `Header` from `Before` comes from inside the loop.
  bool isInside(const llvm::BasicBlock *Header, const llvm::BasicBlock *Before) const {
    return Latches.lookup(Header).contains(Before);
  }
  unsigned words() const { return objectAt(Objects); }
};

/// Appends a block and a path for each segment of `S`: the activation as it is behind that segment. Loops are
/// described.
Resumes describeResumes(const SegmentedFunction &S, const Regions &Paths, const FunctionRows &Rows,
                        const llvm::LoopInfo &LI, Unit &U);

/// Gives the loop of `Header` a register, a phi, that holds the iteration: 0 in the first one.
llvm::PHINode *countIterations(const Resumes &Keep, llvm::BasicBlock *Header);

} // namespace tracekit
