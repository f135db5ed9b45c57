// Runs.cpp: see Runs.h.
#include "Runs.h"
#include "Compat.h"

#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace tracekit {
namespace {

/// The only segment of a basic block, if it records nothing and makes no call; else ~0u.
unsigned quietSegment(const SegmentedFunction &S, const BasicBlock *BB) {
  auto Known = S.OfBlock.find(BB);
  if (Known == S.OfBlock.end() || Known->second.first != Known->second.second)
    return ~0u;
  const Segment &Seg = S.Segments[Known->second.first];
  if (Seg.EndsWithCall || Seg.Continues || (Seg.Flags & TK_BLOCK_LANDING) || !isa<BranchInst>(Seg.End))
    return ~0u;
  for (unsigned K = Seg.FirstOp; K < Seg.FirstOp + Seg.Ops; ++K)
    if (S.Ops[K].words() != 0 || S.Ops[K].Kind == TK_OP_CALL)
      return ~0u;
  return Known->second.first;
}

/// Follows the one way through the loop.
bool collect(const SegmentedFunction &S, const Loop &L, RunLoop &Run) {
  const BasicBlock *BB = Run.Header;
  for (unsigned Count = 0; Count < L.getNumBlocks(); ++Count) {
    unsigned K = quietSegment(S, BB);
    if (K == ~0u)
      return false;
    Run.Segments.push_back(K);
    const BasicBlock *Inside = nullptr;
    for (const BasicBlock *Next : successors(BB)) {
      if (!L.contains(Next))
        continue;
      if (Inside)
        return false;
      Inside = Next;
    }
    BB = Inside;
    if (!BB)
      return false;
  }
  return BB == Run.Header;
}

/// Counts the iterations in a register.
Value *countTrips(const RunLoop &Run, BasicBlock *Preheader, BasicBlock *Latch) {
  IRBuilder<> B(Run.Header, Run.Header->begin());
  B.SetCurrentDebugLocation(DebugLoc());
  PHINode *Before = B.CreatePHI(B.getInt64Ty(), 2, "tk.trips");
  B.SetInsertPoint(Latch->getTerminator());
  B.SetCurrentDebugLocation(DebugLoc());
  Value *After = B.CreateAdd(Before, B.getInt64(1));
  Before->addIncoming(B.getInt64(0), Preheader);
  Before->addIncoming(After, Latch);
  return Run.TestsAtHeader ? Before : After;
}

/// What scalar evolution knows before the loop, or a counter.
Value *trips(const RunLoop &Run, const Loop &L, ScalarEvolution &SE, SCEVExpander &Expander) {
  BasicBlock *Preheader = L.getLoopPreheader();
  Instruction *End = Preheader->getTerminator();
  const SCEV *Taken = SE.getBackedgeTakenCount(&L);
  Type *Word = Type::getInt64Ty(End->getContext());
  if (isa<SCEVCouldNotCompute>(Taken) || SE.getTypeSizeInBits(Taken->getType()) > 64)
    return countTrips(Run, Preheader, L.getLoopLatch());
  const SCEV *Count = SE.getNoopOrZeroExtend(Taken, Word);
  if (!Run.TestsAtHeader)
    Count = SE.getAddExpr(Count, SE.getOne(Word));
  if (!Expander.isSafeToExpandAt(Count, End))
    return countTrips(Run, Preheader, L.getLoopLatch());
  return Expander.expandCodeFor(Count, Word, End);
}

bool isRun(const SegmentedFunction &S, const Loop &L, RunLoop &Run) {
  const BasicBlock *Preheader = L.getLoopPreheader();
  if (!L.isInnermost() || !Preheader || !S.OfBlock.count(Preheader) || !L.getLoopLatch())
    return false;
  Run.Header = L.getHeader();
  Run.Exiting = L.getExitingBlock();
  Run.Exit = L.getExitBlock();
  if (!Run.Exiting || !Run.Exit || !S.OfBlock.count(Run.Exit) || Run.Exit->isEHPad())
    return false;
  Run.TestsAtHeader = Run.Exiting == Run.Header && Run.Header != L.getLoopLatch();
  return (Run.TestsAtHeader || Run.Exiting == L.getLoopLatch()) && collect(S, L, Run);
}

} // namespace

std::vector<RunLoop> findRuns(const SegmentedFunction &S, const LoopInfo &LI, ScalarEvolution &SE) {
  std::vector<RunLoop> Runs;
  auto Expander = expanderFor<SCEVExpander>(SE, S.F->getParent()->getDataLayout(), "tk.trips");
  for (const Loop *L : LI.getLoopsInPreorder()) {
    RunLoop Run;
    if (isRun(S, *L, Run)) {
      Run.Trips = trips(Run, *L, SE, Expander);
      Runs.push_back(std::move(Run));
    }
  }
  return Runs;
}

} // namespace tracekit
