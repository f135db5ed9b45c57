// Conditions.cpp: see Conditions.h.
#include "Conditions.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace tracekit {

/// The phi that a block branches on, if there is nothing else in it, nor another use of it.
static PHINode *decider(BasicBlock &BB) {
  auto *Branch = dyn_cast<BranchInst>(BB.getTerminator());
  auto *Phi = Branch && Branch->isConditional() ? dyn_cast<PHINode>(Branch->getCondition()) : nullptr;
  if (!Phi || Phi->getParent() != &BB || !Phi->hasOneUse())
    return nullptr;
  for (const Instruction &I : BB)
    if (&I != Phi && &I != Branch && !I.isDebugOrPseudoInst())
      return nullptr;
  return Phi;
}

/// From is to branch to To where it branched to Middle.
static void redirect(BasicBlock &From, BasicBlock &Middle, BasicBlock &To) {
  for (PHINode &Phi : To.phis())
    Phi.addIncoming(Phi.getIncomingValueForBlock(&Middle), &From);
  From.getTerminator()->replaceSuccessorWith(&Middle, &To);
}

void branchAtOnce(Function &F) {
  SmallVector<BasicBlock *, 16> Blocks;
  for (BasicBlock &BB : F)
    if (decider(BB))
      Blocks.push_back(&BB);
  for (BasicBlock *BB : Blocks) {
    PHINode *Phi = decider(*BB);
    if (!Phi)
      continue;
    auto *Branch = cast<BranchInst>(BB->getTerminator());
    SmallVector<std::pair<BasicBlock *, BasicBlock *>, 4> Decided;
    for (unsigned Index = 0; Index < Phi->getNumIncomingValues(); ++Index)
      if (auto *Known = dyn_cast<ConstantInt>(Phi->getIncomingValue(Index)))
        Decided.push_back({Phi->getIncomingBlock(Index), Branch->getSuccessor(Known->isZero())});
    for (auto [From, To] : Decided) {
      auto *Way = dyn_cast<BranchInst>(From->getTerminator());
      if (!Way || llvm::count(successors(From), BB) != 1 || llvm::is_contained(successors(From), To) ||
          Phi->getNumIncomingValues() == 1 || To == BB)
        continue;
      redirect(*From, *BB, *To);
      Phi->removeIncomingValue(From, /*DeletePHIIfEmpty=*/false);
    }
    if (BB->getSinglePredecessor())
      MergeBlockIntoPredecessor(BB);
  }
}

} // namespace tracekit
