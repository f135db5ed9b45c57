// Causes.h: what decides whether a loop goes on, and how far its variables advance, down to loads and calls.
#pragma once

#include "Describe.h"
#include "SourceLoops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Dominators.h"

namespace tracekit {

/// Appends rows of causes for one loop's exits and for its phis that advance by a value loaded in each iteration.
class Causes {
public:
  Causes(const llvm::Loop &L, const llvm::LoopInfo &LI, const llvm::DominatorTree &DT, const FunctionRows &Rows,
         const SourceLoop *InSource, Unit &U)
      : L(L), LI(LI), DT(DT), Rows(Rows), InSource(InSource), U(U) {}

  /// What the decision at the end of `From`, which may leave the loop for `To`, depends on.
  void ofExit(Row Exit, llvm::BasicBlock *From, const llvm::BasicBlock *To);

  /// What `Phi` is advanced by, if it is advanced by something that no iteration changes but through memory.
  void ofRecurrence(Row PhiRow, llvm::PHINode &Phi);

private:
  bool follow(llvm::Value *Root, unsigned Depth);
  bool followInto(llvm::Instruction &I, llvm::SmallVectorImpl<llvm::Value *> &Open, unsigned Depth);
  bool followPhi(llvm::PHINode &Phi, llvm::SmallVectorImpl<llvm::Value *> &Open, unsigned Depth);
  bool followLoad(llvm::LoadInst &Load, unsigned Depth);
  bool followCall(llvm::CallBase &Call, unsigned Depth);
  bool chosenBetween(const llvm::PHINode &Merge, llvm::SmallVectorImpl<llvm::Value *> &Open) const;
  bool isEscape(const llvm::BasicBlock &From) const;
  void count(const llvm::BasicBlock &From);
  bool addOther();
  void add(uint32_t Kind, Row Index, bool Fixed);

  const llvm::Loop &L;
  const llvm::LoopInfo &LI;
  const llvm::DominatorTree &DT;
  const FunctionRows &Rows;
  const SourceLoop *InSource; // null if it is not known
  Unit &U;
  uint32_t OfKind = 0;
  Row Of = TK_NONE;
  size_t FirstOfThese = 0;
  llvm::SmallPtrSet<const llvm::PHINode *, 4> Following;         // phis of values that are loaded ahead
  llvm::SmallDenseMap<const llvm::Instruction *, bool> Followed; // loads and calls, and whether they are fixed
};

/// Whether a phi of the loop has its value, by phis alone, from loads of one place whose address no iteration changes,
/// which an optimiser has joined: those in the loop, and others. With `FromEntry`, what comes from outside the loop has
/// to be what the place holds when the loop begins, so that the phi is the same in all iterations if nobody stores
/// there.
bool readsOnePlace(llvm::PHINode &Phi, const llvm::Loop &L, bool FromEntry,
                   llvm::SmallVectorImpl<llvm::LoadInst *> &Loads);

/// The value that decides where a block goes on; null if nothing does.
llvm::Value *decidedBy(llvm::Instruction *Terminator);

} // namespace tracekit
