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

  std::vector<std::pair<unsigned, unsigned>> find() {
    std::vector<std::pair<unsigned, unsigned>> Found;
    BasicBlock *Own = L.isLoopExiting(L.getHeader()) ? L.getHeader() : L.getLoopLatch();
    BlockSet Behind;
    for (BasicBlock *Next : Own ? successors(Own) : successors(L.getHeader()))
      if (Own && !L.contains(Next)) {
        walk(*Own, *Next, Behind, /*ToTheEnd=*/true);
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
          bool GoesOn = walk(*BB, *Next, Reached, /*ToTheEnd=*/false);
          if (!GoesOn && any_of(Behind, [&](auto *Each) { return !Reached.contains(Each); }))
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

  /// The blocks that control may pass from the end of `From` through `To` on, up to the loop's header. Returns whether
  /// it comes there; unless asked to go `ToTheEnd`, as soon as it does, which it soon does from most branches.
  bool walk(BasicBlock &From, BasicBlock &To, BlockSet &Reached, bool ToTheEnd) {
    using State = std::pair<BasicBlock *, ConstantInt *>; // where control goes from the scope that it leaves
    SmallSetVector<State, 16> Open;
    Open.insert({&To, wayAfter(From, nullptr)});
    bool GoesOn = false;
    for (size_t K = 0; K < Open.size() && (ToTheEnd || !GoesOn); ++K) {
      auto [BB, Way] = Open[K];
      Reached.insert(BB);
      GoesOn |= BB == L.getHeader();
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
    return GoesOn;
  }

  /// Where control goes behind a block that it enters on its way to `Way`.
  ConstantInt *wayAfter(BasicBlock &BB, ConstantInt *Way) {
    auto [Place, IsNew] = Ways.try_emplace(&BB, nullptr);
    if (IsNew)
      for (Instruction &I : BB)
        if (auto *Store = dyn_cast<StoreInst>(&I); Store && isWay(Store->getPointerOperand()))
          Place->second = cast<ConstantInt>(Store->getValueOperand());
    return Place->second ? Place->second : Way;
  }

  const Loop &L;
  ArrayRef<BasicBlock *> Blocks;
  DenseMap<const BasicBlock *, ConstantInt *> Ways; // that a block notes, if it does
};

} // namespace

std::vector<std::pair<unsigned, unsigned>> escapesOf(const Loop &L, ArrayRef<BasicBlock *> Blocks) {
  return EscapeFinder(L, Blocks).find();
}

} // namespace tracekit
