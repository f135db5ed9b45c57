// Prepare.cpp: the transformations that come before a function is described.
#include "Conditions.h"
#include "Scalars.h"
#include "Segments.h"
#include "Spills.h"

#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace tracekit {

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

/// What goes on unwinding calls personality functions. That of Rust is instrumented, so who calls it has to be known:
/// `resume` becomes the call that LLVM makes of it later.
static void callToResume(Function &F) {
  if (!F.hasPersonalityFn() || F.getPersonalityFn()->stripPointerCasts()->getName() != "rust_eh_personality")
    return;
  SmallVector<ResumeInst *, 4> Resumed;
  for (BasicBlock &BB : F)
    if (auto *Resume = dyn_cast<ResumeInst>(BB.getTerminator()))
      Resumed.push_back(Resume);
  for (ResumeInst *Resume : Resumed) {
    IRBuilder<> B(Resume);
    FunctionCallee Unwind = F.getParent()->getOrInsertFunction("_Unwind_Resume", B.getVoidTy(), B.getPtrTy());
    B.CreateCall(Unwind, B.CreateExtractValue(Resume->getValue(), 0))->setDoesNotReturn();
    B.CreateUnreachable();
    Resume->eraseFromParent();
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
  callToResume(F);
  branchAtOnce(F);
  spillBeforeCalls(F);
  promoteScalars(F);
  separateInvokes(F);
  hoistStaticAllocas(F);
  if (!controlMayLand(F))
    return nullptr;
  IRBuilder<> B(&F.getEntryBlock(), F.getEntryBlock().begin());
  return B.CreateAlloca(B.getInt64Ty(), nullptr, "tk.frame");
}

} // namespace tracekit
