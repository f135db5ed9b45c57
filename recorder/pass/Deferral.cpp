// Deferral.cpp: see Deferral.h.
#include "Deferral.h"

#include "RegistersAhead.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace tracekit {

/// Places where somebody may look, times words: each is a store.
static constexpr size_t MostStores = 512;

/// Whether no way through the function has two calls: then the activation comes into memory once at most.
static bool callsOnce(const SegmentedFunction &S) {
  SmallPtrSet<const BasicBlock *, 16> Calling, Behind;
  SmallVector<const BasicBlock *, 16> Work;
  for (const Segment &Seg : S.Segments)
    if (Seg.Continues) { // calls that do not come back are rare
      if (!Calling.insert(Seg.Parent).second)
        return false;
      Work.push_back(Seg.Parent);
    }
  while (!Work.empty())
    for (const BasicBlock *Next : successors(Work.pop_back_val())) {
      if (Calling.contains(Next))
        return false;
      if (Behind.insert(Next).second)
        Work.push_back(Next);
    }
  return true;
}

void deferActivations(const SegmentedFunction &S, const Regions &Paths, const LoopInfo &LI, Resumes &Keep) {
  if (S.Frame || Paths.GroundTruth || !callsOnce(S))
    return;
  RegistersAhead Ahead(S);
  std::vector<SmallVector<unsigned, 8>> Words(S.Segments.size());
  size_t Stores = 0;
  for (unsigned K = 0; K < S.Segments.size(); ++K) {
    if (!Paths.starts(K) && !Paths.isInRun(K))
      continue;
    for (unsigned Register : Ahead.from(K).set_bits())
      Words[K].push_back(Keep.registerAt(Register));
    for (auto [Number, Header] : enumerate(Keep.Counted))
      if (LI.getLoopFor(Header)->contains(S.Segments[K].Parent))
        Words[K].push_back(Keep.loopAt(Number));
    for (unsigned Object = 0; Object < Keep.Objects; ++Object) {
      Words[K].push_back(Keep.objectAt(Object));
      Words[K].push_back(Keep.objectAt(Object) + 1);
    }
    Stores += Words[K].size() + ActivationWords;
  }
  if (Stores > MostStores)
    return;
  Keep.IsDeferred = true;
  Keep.WordsAt = std::move(Words);
}

} // namespace tracekit
