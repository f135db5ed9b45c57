// DoHead.cpp: see DoHead.h.
#include "DoHead.h"

#include "SourceUpdates.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace tracekit {

/// The number of iterations that are left, which the header tests, and each iteration takes one from.
static const PHINode *iterationsLeft(const Loop &L, const BasicBlock &Latch) {
  auto *Branch = dyn_cast<BranchInst>(L.getHeader()->getTerminator());
  auto *Test = Branch && Branch->isConditional() ? dyn_cast<ICmpInst>(Branch->getCondition()) : nullptr;
  auto *Left = Test ? dyn_cast<PHINode>(Test->getOperand(0)) : nullptr;
  auto *Zero = Test ? dyn_cast<ConstantInt>(Test->getOperand(1)) : nullptr;
  if (!Left || !Zero || !Zero->isZero() || Test->getPredicate() != ICmpInst::ICMP_SGT ||
      Left->getParent() != L.getHeader() || !L.contains(Branch->getSuccessor(0)))
    return nullptr;
  auto *Next = dyn_cast<BinaryOperator>(Left->getIncomingValueForBlock(&Latch));
  auto *One = Next ? dyn_cast<ConstantInt>(Next->getOperand(1)) : nullptr;
  bool IsByOne = One && ((Next->getOpcode() == Instruction::Sub && One->isOne()) ||
                         (Next->getOpcode() == Instruction::Add && One->isMinusOne()));
  return IsByOne && Next->getOperand(0) == Left ? Left : nullptr;
}

/// The store into a variable of what a loop's header has for this iteration, which is the first store of a block.
static StoreInst *storeOfCounter(const BasicBlock &BB, const Loop &L) {
  for (const Instruction &I : BB)
    if (auto *Store = dyn_cast<StoreInst>(&I)) {
      const Value *Stored = Store->getValueOperand();
      while (auto *Cast = dyn_cast<CastInst>(Stored))
        Stored = Cast->getOperand(0);
      auto *Phi = dyn_cast<PHINode>(Stored);
      return Phi && Phi->getParent() == L.getHeader() ? const_cast<StoreInst *>(Store) : nullptr;
    }
  return nullptr;
}

static bool leavesElsewhere(const Loop &L) {
  for (const BasicBlock *BB : L.blocks())
    for (const BasicBlock *Next : successors(BB))
      if (!L.contains(Next) && BB != L.getHeader() && !isa<UnreachableInst>(Next->getTerminator()))
        return true;
  return false;
}

ForHead doHeadOf(const LoopText &Text) {
  ForHead Found;
  const Loop &L = Text.L;
  const BasicBlock *Latch = L.getLoopLatch();
  const PHINode *Left = Latch ? iterationsLeft(L, *Latch) : nullptr;
  StoreInst *First = Left ? storeOfCounter(*L.getHeader()->getTerminator()->getSuccessor(0), L) : nullptr;
  if (!First || !declarationOf(First->getPointerOperand()))
    return Found;
  auto Known = Text.T.Of.find(First->getPointerOperand());
  if (Known == Text.T.Of.end())
    return Found;
  Found.Counter = First->getPointerOperand();
  Found.IsCanonical = isa<AllocaInst>(Found.Counter) && !leavesElsewhere(L);
  for (const PHINode &Phi : L.getHeader()->phis())
    if (&Phi != Left)
      Found.Step = constantStep(*Phi.getIncomingValueForBlock(Latch));
  const BasicBlock *Before = L.getLoopPredecessor();
  auto *Iterations = Before ? dyn_cast<ConstantInt>(Left->getIncomingValueForBlock(Before)) : nullptr;
  Found.RunsAlways = Iterations && Iterations->getSExtValue() > 0;
  return Found;
}

/// Takes what a loop adds its step to from the header in place of memory.
static bool stepCounter(const Loop &L) {
  BasicBlock *Latch = L.getLoopLatch();
  if (!Latch || !iterationsLeft(L, *Latch))
    return false;
  StoreInst *First = storeOfCounter(*L.getHeader()->getTerminator()->getSuccessor(0), L);
  auto *Counter = First ? dyn_cast<PHINode>(First->getValueOperand()) : nullptr;
  auto *Next = Counter ? dyn_cast<BinaryOperator>(Counter->getIncomingValueForBlock(Latch)) : nullptr;
  auto *Again = Next ? dyn_cast<LoadInst>(Next->getOperand(0)) : nullptr;
  if (!Again || Next->getOpcode() != Instruction::Add || Again->getPointerOperand() != First->getPointerOperand() ||
      Again->getType() != Counter->getType() || !L.contains(Again))
    return false;
  Next->setOperand(0, Counter);
  if (Again->use_empty())
    Again->eraseFromParent();
  return true;
}

bool stepCounters(Module &M) {
  bool Changed = false;
  for (Function &F : M) {
    const DISubprogram *Of = F.getSubprogram();
    if (F.isDeclaration() || !Of || !isFortran(*Of))
      continue;
    DominatorTree DT(F);
    LoopInfo LI(DT);
    for (const Loop *L : LI.getLoopsInPreorder())
      Changed |= stepCounter(*L);
  }
  return Changed;
}

bool leavesCounter(const BasicBlock &Behind, Object Counter, const Loop &L) {
  const StoreInst *Store = L.contains(&Behind) ? nullptr : storeOfCounter(Behind, L);
  return Store && Store->getPointerOperand() == Counter;
}

} // namespace tracekit
