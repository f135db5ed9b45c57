// QuietLoops.cpp: see QuietLoops.h.
#include "QuietLoops.h"

#include "Leaves.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

static bool mayLook(const Instruction &I) {
  return I.isAtomic() || (isa<CallBase>(I) && !isa<IntrinsicInst>(I) && !callsLeaf(I));
}

/// The same of a block of the loop that begins with segment `Start`.
static bool mayLook(const BasicBlock &BB, unsigned Start, const SegmentedFunction &S, const Regions &Paths) {
  auto Known = S.OfBlock.find(&BB);
  if (Known == S.OfBlock.end() || any_of(BB, [](const Instruction &I) { return mayLook(I); }))
    return true;
  for (unsigned K = Known->second.first; K <= Known->second.second; ++K)
    if (Paths.isInRun(K) || S.Segments[K].EndsWithCall || Paths.starts(K) != (K == Start))
      return true;
  return false;
}

bool isQuiet(const BasicBlock *Header, const SegmentedFunction &S, const Regions &Paths, const Resumes &Keep) {
  auto Known = S.OfBlock.find(Header);
  auto Latches = Keep.Latches.find(Header);
  if (Paths.GroundTruth || Known == S.OfBlock.end() || Latches == Keep.Latches.end())
    return false;
  SmallSetVector<const BasicBlock *, 8> Body;
  Body.insert(Header);
  Body.insert(Latches->second.begin(), Latches->second.end());
  for (unsigned Next = 0; Next < Body.size(); ++Next) {
    const BasicBlock *BB = Body[Next];
    if (mayLook(*BB, Known->second.first, S, Paths) || (BB != Header && Keep.LoopOf.count(BB)))
      return false;
    if (BB != Header)
      Body.insert(pred_begin(BB), pred_end(BB));
  }
  return true;
}

} // namespace tracekit
