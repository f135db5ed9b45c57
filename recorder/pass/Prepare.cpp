// Prepare.cpp: the transformations that come before a function is described.
#include "Segments.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace tracekit {

/// At -O0 every local lives in memory, and every i++ would be a dependence carried by memory. Called directly, because
/// passes skip optnone functions. Not where setjmp is called: unoptimised code may rely on locals in memory.
static void promoteScalars(Function &F) {
  if (callsReturnTwice(F))
    return;
  SmallVector<AllocaInst *, 16> Scalars;
  for (;;) {
    Scalars.clear();
    for (Instruction &I : F.getEntryBlock())
      if (auto *A = dyn_cast<AllocaInst>(&I); A && isAllocaPromotable(A))
        Scalars.push_back(A);
    if (Scalars.empty())
      return;
    DominatorTree DT(F);
    AssumptionCache AC(F);
    PromoteMemToReg(Scalars, DT, &AC);
  }
}

static void separateInvokes(Function &F) {
  SmallVector<InvokeInst *, 16> Shared;
  for (BasicBlock &BB : F)
    if (auto *Invoke = dyn_cast<InvokeInst>(BB.getTerminator()))
      if (!Invoke->getNormalDest()->getSinglePredecessor())
        Shared.push_back(Invoke);
  for (InvokeInst *Invoke : Shared) {
    BasicBlock *Target = Invoke->getNormalDest();
    BasicBlock *Edge = BasicBlock::Create(F.getContext(), "", &F, Target);
    BranchInst::Create(Target, Edge)->setDebugLoc(Invoke->getDebugLoc());
    Invoke->setNormalDest(Edge);
    Target->replacePhiUsesWith(Invoke->getParent(), Edge);
  }
}

/// Static allocas must stay in the entry block, which the first check for room will cut.
static void hoistStaticAllocas(Function &F) {
  BasicBlock &Entry = F.getEntryBlock();
  BasicBlock::iterator Top = Entry.begin();
  while (isa<AllocaInst>(*Top))
    ++Top;
  SmallVector<AllocaInst *, 8> Late;
  for (Instruction &I : make_range(Top, Entry.end()))
    if (auto *A = dyn_cast<AllocaInst>(&I); A && A->isStaticAlloca())
      Late.push_back(A);
  for (AllocaInst *A : Late)
    A->moveBefore(&*Top);
}

void givePreheaders(DominatorTree &DT, LoopInfo &LI) {
  for (Loop *L : LI.getLoopsInPreorder())
    if (!L->getLoopPreheader())
      InsertPreheaderForLoop(L, &DT, &LI, /*MSSAU=*/nullptr, /*PreserveLCSSA=*/false);
}

static bool controlMayLand(const Function &F) {
  for (const BasicBlock &BB : F) {
    if (BB.isLandingPad())
      return true;
    for (const Instruction &I : BB)
      if (returnsTwice(I))
        return true;
  }
  return false;
}

AllocaInst *prepare(Function &F) {
  promoteScalars(F);
  separateInvokes(F);
  hoistStaticAllocas(F);
  if (!controlMayLand(F))
    return nullptr;
  IRBuilder<> B(&F.getEntryBlock(), F.getEntryBlock().begin());
  return B.CreateAlloca(B.getInt64Ty(), nullptr, "tk.frame");
}

} // namespace tracekit
