// LoopDoors.cpp: see LoopDoors.h.
//
// A loop has its door at its header. If its iterations go into loops only now and then, there is a door before each of
// these instead: the others are as short as those of an innermost loop, and a test in each would cost as much as they
// do.
#include "LoopDoors.h"

#include "llvm/IR/CFG.h"

using namespace llvm;

namespace tracekit {

namespace {

/// Whether iterations may take long: there are loops in them, and loops in those, or nothing around.
bool isLong(const Loop &L) {
  return !L.isInnermost() && (L.isOutermost() || any_of(L, [](const Loop *Inner) { return !Inner->isInnermost(); }));
}

bool passesCall(const Loop &L, const SegmentedFunction &S, const LoopInfo &LI) {
  for (const BasicBlock *BB : L.blocks()) {
    auto Inside = S.OfBlock.find(BB);
    if (LI.getLoopFor(BB) != &L || Inside == S.OfBlock.end())
      continue;
    for (unsigned K = Inside->second.first; K <= Inside->second.second; ++K)
      if (S.Segments[K].Continues)
        return true;
  }
  return false;
}

/// An address of one body is alive there.
bool jumpsAtHeader(const Loop &L) {
  auto *Jump = dyn_cast<IndirectBrInst>(L.getHeader()->getTerminator());
  return Jump && isa<PHINode>(Jump->getAddress());
}

/// A block of the loop itself, not of one inside, from which control comes to `BB`; null: there is none.
const BasicBlock *before(const BasicBlock &BB, const Loop &L, const SegmentedFunction &S, const LoopInfo &LI) {
  for (const BasicBlock *Before : predecessors(&BB))
    if (LI.getLoopFor(Before) == &L && S.OfBlock.count(Before))
      return Before;
  return nullptr;
}

/// Doors before the loops inside; none, if an iteration always goes into one of them, or one has no place for a door.
SmallVector<LoopDoor, 4> doorsInside(const Loop &L, const SegmentedFunction &S, const DominatorTree &DT,
                                     const LoopInfo &LI) {
  SmallVector<LoopDoor, 4> Found;
  SmallVector<BasicBlock *, 4> Latches;
  L.getLoopLatches(Latches);
  for (const Loop *Inner : L) {
    const BasicBlock *At = Inner->getLoopPreheader();
    if (!At || At == L.getHeader() || !S.OfBlock.count(At) || At->isEHPad() ||
        all_of(Latches, [&](const BasicBlock *Latch) { return DT.dominates(At, Latch); }))
      return {};
    const BasicBlock *Before = before(*At, L, S, LI);
    if (!Before)
      return {};
    Found.push_back({At, Before});
  }
  return Found;
}

} // namespace

SmallVector<LoopDoor, 4> loopDoors(const SegmentedFunction &S, const DominatorTree &DT, const LoopInfo &LI) {
  SmallVector<LoopDoor, 4> Found;
  for (const Loop *L : LI.getLoopsInPreorder()) {
    const BasicBlock *Header = L->getHeader(), *Entering = L->getLoopPredecessor();
    if (!isLong(*L) || !S.OfBlock.count(Header) || !Entering || !S.OfBlock.count(Entering) || jumpsAtHeader(*L) ||
        passesCall(*L, S, LI))
      continue;
    SmallVector<LoopDoor, 4> Inside = doorsInside(*L, S, DT, LI);
    Found.append(Inside.begin(), Inside.end());
    if (!Inside.empty())
      continue;
    for (const BasicBlock *Before : predecessors(Header))
      if (L->contains(Before) && S.OfBlock.count(Before)) {
        Found.push_back({Header, Before, Entering});
        break;
      }
  }
  return Found;
}

} // namespace tracekit
