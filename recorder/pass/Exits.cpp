// Exits.cpp: see Exits.h.
#include "Exits.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace tracekit {

/// A way that passes more blocks is not known to end the program. (In a `main` that ends by exit(), all ways do.)
static constexpr unsigned MostBlocksToTheEnd = 8;

/// Whether the function ends abnormally on all ways from `Target`; `Seen` gets the blocks on them.
static bool endsOnAllWays(const BasicBlock *Target, bool AlsoByUnwinding, Blocks &Seen) {
  SmallVector<const BasicBlock *, 8> Open = {Target};
  while (!Open.empty()) {
    const BasicBlock *BB = Open.pop_back_val();
    if ((BB->isLandingPad() && !AlsoByUnwinding) || !Seen.insert(BB).second)
      continue;
    bool Ends = isa<UnreachableInst, ResumeInst>(BB->getTerminator());
    if (Seen.size() > MostBlocksToTheEnd || (succ_empty(BB) && !Ends))
      return false;
    Open.append(succ_begin(BB), succ_end(BB));
  }
  return true;
}

bool isOrdinaryExit(const BasicBlock *Target) {
  Blocks Seen;
  return !endsOnAllWays(Target, false, Seen);
}

/// Takes out the blocks that can be reached from elsewhere, and what those lead to.
static void keepOwn(const Loop &L, Blocks &Ending) {
  auto IsFromElsewhere = [&](const BasicBlock *BB) {
    return any_of(predecessors(BB),
                  [&](const BasicBlock *From) { return !L.contains(From) && !Ending.contains(From); });
  };
  SmallVector<const BasicBlock *, 8> Shared;
  do {
    Shared.clear();
    copy_if(Ending, std::back_inserter(Shared), IsFromElsewhere);
    for (const BasicBlock *BB : Shared)
      Ending.erase(BB);
  } while (!Shared.empty());
}

Blocks endingBlocks(const Loop &L) {
  SmallVector<BasicBlock *, 8> Targets;
  L.getUniqueExitBlocks(Targets);
  Blocks Ending;
  if (none_of(Targets, isOrdinaryExit))
    return Ending;
  for (const BasicBlock *Target : Targets)
    if (Blocks Seen; endsOnAllWays(Target, true, Seen))
      Ending.insert(Seen.begin(), Seen.end());
  keepOwn(L, Ending);
  return Ending;
}

} // namespace tracekit
