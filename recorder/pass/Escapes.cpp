// Escapes.cpp: see Escapes.h.
#include "Escapes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

namespace {

class EscapeFinder {
public:
  EscapeFinder(const Loop &L, ArrayRef<BasicBlock *> Blocks) : L(L), Blocks(Blocks) {}

  std::vector<std::pair<unsigned, unsigned>> find() const {
    std::vector<std::pair<unsigned, unsigned>> Found;
    BasicBlock *Own = L.isLoopExiting(L.getHeader()) ? L.getHeader() : L.getLoopLatch();
    BlockSet Behind;
    for (BasicBlock *Next : Own ? successors(Own) : successors(L.getHeader()))
      if (Own && !L.contains(Next)) {
        walk(*Own, *Next, Behind);
        if (any_of(*Next, [](const Instruction &I) { return isLeavingAScope(I); }))
          Behind.erase(Next); // of this way only
      }
    if (Behind.empty() || !leavesSomewhere(Own))
      return Found;
    for (BasicBlock *BB : Blocks)
      if (auto *Branch = dyn_cast<BranchInst>(BB->getTerminator());
          Branch && Branch->isConditional() && Branch->getDebugLoc() && BB != Own)
        for (BasicBlock *Next : successors(BB)) {
          BlockSet Reached;
          walk(*BB, *Next, Reached);
          if (!Reached.contains(L.getHeader()) && any_of(Behind, [&](auto *Each) { return !Reached.contains(Each); }))
            Found.push_back({Branch->getDebugLoc().getLine(), Branch->getDebugLoc().getCol()});
        }
    return Found;
  }

private:
  using BlockSet = SmallPtrSet<const BasicBlock *, 16>;

  bool leavesSomewhere(const BasicBlock *Own) const {
    return any_of(Blocks, [&](BasicBlock *BB) {
      return BB != Own && any_of(successors(BB), [&](BasicBlock *Next) { return !L.contains(Next); });
    });
  }

  /// Clang ends the lifetimes of a scope, and notes in a variable where control goes from there.
  static bool isLeavingAScope(const Instruction &I) {
    auto *Marker = dyn_cast<IntrinsicInst>(&I);
    auto *Store = dyn_cast<StoreInst>(&I);
    return (Marker && Marker->isLifetimeStartOrEnd()) ||
           (Store && isa<ConstantInt>(Store->getValueOperand()) && isWay(Store->getPointerOperand()));
  }

  static bool isWay(const Value *V) {
    return isa<AllocaInst>(V) && all_of(V->users(), [](const User *U) {
             if (auto *Store = dyn_cast<StoreInst>(U))
               return isa<ConstantInt>(Store->getValueOperand());
             return isa<LoadInst>(U) && all_of(U->users(), [](const User *By) { return isa<SwitchInst>(By); });
           });
  }

  /// The blocks that control may pass from the end of `From` through `To` on, up to the loop's header.
  void walk(BasicBlock &From, BasicBlock &To, BlockSet &Reached) const {
    using State = std::pair<BasicBlock *, ConstantInt *>; // where control goes from the scope that it leaves
    SmallSetVector<State, 16> Open;
    Open.insert({&To, wayAfter(From, nullptr)});
    for (size_t K = 0; K < Open.size(); ++K) {
      auto [BB, Way] = Open[K];
      Reached.insert(BB);
      if (BB == L.getHeader())
        continue;
      Way = wayAfter(*BB, Way);
      auto *Switch = dyn_cast<SwitchInst>(BB->getTerminator());
      auto *Load = Switch ? dyn_cast<LoadInst>(Switch->getCondition()) : nullptr;
      if (Way && Load && isWay(Load->getPointerOperand()) && Way->getType() == Load->getType())
        Open.insert({Switch->findCaseValue(Way)->getCaseSuccessor(), Way});
      else
        for (BasicBlock *Next : successors(BB))
          Open.insert({Next, Way});
    }
  }

  static ConstantInt *wayAfter(BasicBlock &BB, ConstantInt *Way) {
    for (Instruction &I : BB)
      if (auto *Store = dyn_cast<StoreInst>(&I); Store && isWay(Store->getPointerOperand()))
        Way = cast<ConstantInt>(Store->getValueOperand());
    return Way;
  }

  const Loop &L;
  ArrayRef<BasicBlock *> Blocks;
};

} // namespace

std::vector<std::pair<unsigned, unsigned>> escapesOf(const Loop &L, ArrayRef<BasicBlock *> Blocks) {
  return EscapeFinder(L, Blocks).find();
}

} // namespace tracekit
